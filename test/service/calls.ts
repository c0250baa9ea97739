import type { Client } from '../../src/client/client.ts';
import type { LicenseQuery } from '../../src/client/licenses/licenses.ts';
import type { Row } from './row.ts';

type Call = (client: Client, id: string, body: never, query: URLSearchParams) => Promise<unknown>;

/** The service judges the fields. */
const ALL = { unchecked: true, allowInternal: true } as const;
const SENT = { unchecked: true } as const;

function pageOf({ catalog }: Client, query: URLSearchParams): Promise<unknown> {
  const texts = (name: string) => query.get(name)?.split(',') ?? [];
  const [from, until] = [query.get('from') ?? undefined, query.get('until') ?? undefined];
  const lists = { includeDetails: texts('include_details'), currency: texts('currency') };
  return catalog.products({ ...lists, from, until, perPage: Number(query.get('per_page')) }).next();
}

/** The method of the client for each operation; users and credentials are given by their rows. */
const CALLS: readonly (readonly [operation: RegExp, call: Call])[] = [
  [/^PUT \/v4\/assets$/, ({ assets }, _id, body) => assets.create(body, SENT)],
  [/^PUT \/v4\/assets\/([^?]+)/, ({ assets }, id, body) => assets.put(id, body, ALL)],
  [/^POST \/vital_books$/, ({ books }, _id, body) => books.create(body)],
  [/^PUT \/vital_books\/([^?]+)/, ({ books }, id, body) => books.update(id, body)],
  [/^GET \/vital_books\/([^?]+)/, ({ books }, id) => books.read(id)],
  [/^POST \/v4\/packages$/, ({ packages }, _id, body) => packages.create(body, SENT)],
  [/^PUT \/v4\/packages\/([^?]+)/, ({ packages }, id, body) => packages.update(id, body, SENT)],
  [/^GET \/v4\/packages\/([^?]+)/, ({ packages }, id) => packages.read(id)],
  [/^DELETE \/v4\/packages\/([^?]+)\/assets/, ({ packages }, id, fields) => packages.delete(id, { fields })],
  [/^GET \/v4\/products\?/, (client, _id, _body, query) => pageOf(client, query)],
  [/^GET \/v4\/products\/([^?]+)/, ({ catalog }, id) => catalog.product(id)],
  [/^GET \/v3\/users\.xml\/([^?]+)/, ({ users }, id) => users.read(id)],
  [
    /^GET \/v3\/licenses\.xml/,
    ({ licenses }, _id, _body, query) => {
      const [sku, type] = [query.get('sku') ?? undefined, query.get('license_type') ?? undefined];
      return licenses.read({ sku, type } as LicenseQuery);
    },
  ],
];

/** Lets the client send the request of a row. */
export function callOf({ asks: [operation, body], call }: Row, client: Client): Promise<unknown> {
  if (call !== undefined && call !== null) return call(client);
  for (const [pattern, ask] of CALLS) {
    const [found, id = ''] = pattern.exec(operation) ?? [];
    const query = new URLSearchParams(operation.split('?')[1]);
    if (found !== undefined) return ask(client, decodeURIComponent(id), body as never, query);
  }
  throw new Error(`no call of the client for ${operation}`);
}
