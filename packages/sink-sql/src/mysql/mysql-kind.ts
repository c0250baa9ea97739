import { OTHER_TABLE, TABLE_OPTIONS } from '../sql/table-options.ts';
import { FOLLOWED, mysqlLabel, mysqlProblem } from './mysql-address.ts';

/** The same tables in MySQL or MariaDB. */
export const mysqlKind = {
  schemes: ['mysql:', 'mariadb:'],
  stores: 'the same tables in MySQL or MariaDB',
  identity: 'host and port, or socket; database, table',
  options: { ...TABLE_OPTIONS, ...FOLLOWED },
  address: mysqlLabel,
  faultOf: mysqlProblem,
  files: ['ssl-ca', 'ssl-cert', 'ssl-key', 'socket'],
  hasPublicUser: true,
  apart: OTHER_TABLE,
};
