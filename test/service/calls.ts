import type { Client } from 'catchword-client/client';
import type { CredentialSubmission } from 'catchword-client/credentials/submission';
import type { LicenseQuery } from 'catchword-client/licenses/licenses';
import type { NewUser } from 'catchword-client/users/users';
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

const NAMES: Readonly<Record<string, string>> = {
  'access-token': 'accessToken',
  'first-name': 'firstName',
  'last-name': 'lastName',
};
const MARKS: Readonly<Record<string, string>> = { amp: '&', quot: '"', lt: '<', gt: '>' };

/** Names and values of attributes or elements, by the names of the client. */
function fieldsOf(xml: string, form: RegExp): Record<string, string> {
  const plain = (text: string) => text.replaceAll(/&(\w+);/g, (_all, name: string) => MARKS[name] ?? '');
  return Object.fromEntries(
    [...xml.matchAll(form)].map(([, name = '', text = '']) => [NAMES[name] ?? name, plain(text)]),
  );
}

function submissionsOf(xml: string): CredentialSubmission[] {
  const elements = xml.match(/<credential [^>]*>/g) ?? [];
  return elements.map((one) => fieldsOf(one, /([\w-]+)="([^"]*)"/g) as unknown as CredentialSubmission);
}

function userOf(xml: string): NewUser {
  const { 'redemption-code': code, ...user } = fieldsOf(xml, /<([\w-]+)>([^<]*)<\//g);
  return { ...user, ...(code !== undefined && { others: { 'redemption-code': code } }) } as unknown as NewUser;
}

/** The method of the client for each operation. */
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
  [/^POST \/v3\/credentials/, ({ credentials }, _id, body) => credentials.verify(submissionsOf(body))],
  [/^POST \/v3\/users\.xml/, ({ users }, _id, body) => users.create(userOf(body))],
  [/^GET \/v3\/users\.xml\/([^?]+)/, ({ users }, id) => users.read(id)],
  [
    /^GET \/v3\/licenses\.xml/,
    ({ licenses }, _id, _body, query) => {
      const [sku, type] = [query.get('sku') ?? undefined, query.get('license_type') ?? undefined];
      return licenses.read({ sku, type } as LicenseQuery);
    },
  ],
];

/** Calls that rows name. */
const NAMED: Readonly<Record<string, Call>> = {
  'put new': ({ assets }, _id, body) => assets.put('L-1', body, { create: true }),
};

/** Lets the client send the request of a row. */
export function callOf({ asks: { operation, body }, call }: Row, client: Client): Promise<unknown> {
  const query = new URLSearchParams(operation.split('?')[1]);
  const named = NAMED[call ?? ''];
  if (named !== undefined) return named(client, '', body as never, query);
  for (const [pattern, ask] of CALLS) {
    const [found, id = ''] = pattern.exec(operation) ?? [];
    if (found !== undefined) return ask(client, decodeURIComponent(id), body as never, query);
  }
  throw new Error(`no call of the client for ${operation}`);
}
