import { hostUrls } from '@catchword/base/host-urls';
import { OTHER_TABLE, TABLE_OPTIONS } from '../sql/table-options.ts';
import { parsable, placeProblem, postgresLabel } from './postgres-address.ts';

/** Tables in PostgreSQL. Options of its own clients are in postgres-address.ts. */
export const postgresKind = {
  schemes: ['postgres:', 'postgresql:'],
  stores: 'tables with a row for each product and for each price',
  identity: 'host, port, database, table',
  options: TABLE_OPTIONS,
  parse: (address: string) => hostUrls(parsable(address)),
  address: postgresLabel,
  faultOf: placeProblem,
  files: ['sslrootcert', 'sslcert', 'sslkey'],
  hasPublicUser: true,
  apart: OTHER_TABLE,
};
