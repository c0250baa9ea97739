import { parse } from 'isbn3';
import { CatchwordError } from '../../errors.ts';
import { parseIsoTime } from '../../iso-time.ts';
import type { XmlElement } from '../../xml/read.ts';
import { saidByElements } from '../errors/error-body.ts';
import type { Caller } from '../http/requester.ts';
import type { XmlAnswer } from '../http/response.ts';
import { errorIn, fieldsOf, othersIn, type Records, recordsIn, unexpected } from '../http/xml-records.ts';
import { checkLicenseQuery } from '../operations/license-query.ts';
import { countIn, saysNothing } from './no-license.ts';

/** A license that a user holds (interface, section 2.3). What the service leaves out or leaves empty is null. */
export interface License {
  /** The book identifier; empty where the service left it out. */
  readonly sku: string;
  /** `download`, which some services write, is read as `downloadable`. Others are kept as they are. */
  readonly type: 'online' | 'downloadable' | (string & {}) | null;
  /** As the service wrote it. */
  readonly expiration: string | null;
  /**
   * Milliseconds since 1970; null for `never`; undefined where the service gave none, or none that can be read. A date
   * without a time lasts until its end in UTC.
   */
  readonly expiresAt: number | null | undefined;
  readonly imprint: string | null;
  readonly publisher: string | null;
  readonly name: string | null;
  readonly isbn: string | null;
  readonly partOf: string | null;
  readonly term: string | null;
  /** `code-api`, `add-drop`, `promotional`, `p+e`; others have been seen. */
  readonly codeUse: string | null;
  readonly kind: string | null;
  /** Attributes, and child elements, that the interface does not name. */
  readonly others: Readonly<Record<string, string>>;
}

export interface Licenses {
  /** One element for each type of a title; expired ones as well. */
  readonly licenses: readonly License[];
  /** Of what is listed, what the user has access to. Not every service says. */
  readonly distributable?: number;
  /** All licenses of the user, deactivated titles as well. Not every service says. */
  readonly total?: number;
}

export interface LicenseQuery {
  /** The book identifier; without it, the whole account. */
  readonly sku?: string | undefined;
  readonly type?: 'online' | 'downloadable' | 'all' | undefined;
}

const KNOWN: readonly string[] = [
  ...['imprint', 'publisher', 'name', 'sku', 'isbn', 'part_of', 'term', 'code-use', 'kind', 'type', 'expiration'],
];
const DAY_MS = 86_400_000;

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const RFC_1123 = /^[A-Z][a-z]{2}, (\d{1,2}) ([A-Z][a-z]{2}) (\d{4}) (\d\d:\d\d:\d\d) (GMT|UTC|[+-]\d{4})$/;

/** An RFC 1123 date as ISO 8601 has it; anything else as it is. */
function asIso(text: string): string {
  const [, day = '', month = '', year, time, zone] = RFC_1123.exec(text) ?? [];
  if (year === undefined) return text;
  const number = String(MONTHS.indexOf(month) + 1);
  return `${year}-${number.padStart(2, '0')}-${day.padStart(2, '0')} ${time} ${zone}`;
}

/** `never`, an RFC 1123 date or an ISO date, also as Ruby writes it; one without a time zone is UTC. */
export function expirationMs(text: string | null): number | null | undefined {
  const value = text?.trim() ?? '';
  if (/^never$/i.test(value)) return null;
  const ms = parseIsoTime(
    asIso(value)
      .replace(/ ?(?:UTC|GMT)$/, 'Z')
      .replace(/ ?([+-]\d\d):?(\d\d)$/, '$1:$2'),
  );
  if (ms === null) return undefined;
  return /^\d{4}-\d\d-\d\d$/.test(value) ? ms + DAY_MS : ms;
}

function typeOf(text: string | null): License['type'] {
  return text === 'download' ? 'downloadable' : text;
}

function licenseFrom(element: XmlElement): License {
  const fields = fieldsOf(element);
  const field = (name: string): string | null => fields.get(name) || null;
  const expiration = field('expiration');
  return {
    sku: field('sku') ?? '',
    type: typeOf(field('type')),
    expiration,
    expiresAt: expirationMs(expiration),
    imprint: field('imprint'),
    publisher: field('publisher'),
    name: field('name'),
    isbn: field('isbn'),
    partOf: field('part_of'),
    term: field('term'),
    codeUse: field('code-use'),
    kind: field('kind'),
    others: othersIn(fields, KNOWN),
  };
}

/** The error where no license was found and something else was: taken for "not licensed", it would sell a title twice. */
function whyNone({ others, roots }: Records, answer: XmlAnswer, origin: string): CatchwordError | undefined {
  const hasCode = saidByElements(others, answer.hide, true)?.code !== undefined;
  const isNone = !hasCode && saysNothing(others, roots.length === 0);
  return isNone ? undefined : unexpected('licenses', answer, origin);
}

function licensesFrom(answer: XmlAnswer, origin: string): Licenses {
  const found = recordsIn(answer, 'licenses', ['license']);
  const { records, others, roots } = found;
  const error = errorIn(others, answer, origin) ?? (records.length === 0 ? whyNone(found, answer, origin) : undefined);
  if (error !== undefined) throw error;
  const distributable = countIn(others, 'distributable_products');
  const total = countIn(others, 'total_products');
  // Nothing at all does not say that nothing is licensed.
  if (roots.length === 0 && records.length === 0 && total === undefined) throw unexpected('licenses', answer, origin);
  return {
    licenses: records.map(licenseFrom),
    ...(distributable !== undefined && { distributable }),
    ...(total !== undefined && { total }),
  };
}

/**
 * `GET /v3/licenses.xml` (interface, section 4.2): what the user of the access token holds.
 * @throws CatchwordError USAGE, SOURCE_*, SERVICE_*, XML_INVALID, INTERRUPTED; SERVICE_* for an error inside a 200 as well
 */
export async function readLicenses(caller: Caller, asked: LicenseQuery, signal: AbortSignal): Promise<Licenses> {
  const { sku, type } = checkLicenseQuery(asked);
  const query = new URLSearchParams();
  if (sku !== undefined) query.set('sku', sku);
  if (type !== undefined) query.set('license_type', type);
  const call = { method: 'GET', path: '/v3/licenses.xml', token: true, repeatable: true, query, signal } as const;
  return await caller.xml(call, (answer) => licensesFrom(answer, caller.origin));
}

/**
 * The same for all ways to write an identifier: with dashes or without, as ISBN-10 or ISBN-13, with the marker of a
 * rental (`R180`) or without.
 */
function canonical(identifier: string): string {
  const title = identifier.trim().replace(/(.)R\d{2,4}$/, '$1');
  return parse(title)?.isbn13 ?? title.replace(/[\s-]/g, '').toUpperCase();
}

/** Whether licenses are all of one title: called the same, or with the same ISBN. */
function isOneTitle(licenses: readonly License[]): boolean {
  const skus = new Set(licenses.map(({ sku }) => canonical(sku)));
  const isbns = new Set(licenses.map(({ isbn }) => isbn && canonical(isbn)));
  return skus.size === 1 || (isbns.size === 1 && !isbns.has(null));
}

/** What is left out in a license may be the very title that was asked for. */
function nameless(): CatchwordError {
  return new CatchwordError('SERVICE_ERROR', 'the service listed a license with neither sku nor isbn', {
    hint: 'Whether the title is owned is not known: look at what licenses.read gives, and ask the service.',
  });
}

function isCurrent({ expiresAt }: License, nowMs: number): boolean {
  return expiresAt === null || expiresAt === undefined || expiresAt > nowMs;
}

/**
 * Whether licenses that were asked for by `sku` mean that the title is owned (interface, 4.2 rule 2).
 *
 * A license counts that has not expired at `nowMs`: one that never expires, or whose expiration lies ahead. One whose
 * expiration is missing or cannot be read counts too, because a sale that is refused can be made later, and one made twice
 * is not undone. Its type does not matter. A service lists the title under whichever of its identifiers it prefers, so
 * the answer is believed where it names one title; where it names several, only those count whose `sku` or `isbn` is what
 * was asked for.
 *
 * @throws CatchwordError SERVICE_ERROR where that depends on a license that names no title
 */
export function isOwned({ licenses }: Licenses, sku: string, nowMs: number): boolean {
  const wanted = canonical(sku);
  const named = licenses.filter((license) => license.sku !== '' || license.isbn !== null);
  const isOne = isOneTitle(named);
  const isWanted = (license: License): boolean =>
    isOne || [license.sku, license.isbn].some((name) => name !== null && canonical(name) === wanted);
  if (named.some((license) => isWanted(license) && isCurrent(license, nowMs))) return true;
  if (licenses.some((license) => !named.includes(license) && isCurrent(license, nowMs))) throw nameless();
  return false;
}
