import { CatchwordError } from '@catchword/base/errors';
import { canonicalIdentifier } from '@catchword/base/isbn';
import { parseIsoTime } from '@catchword/base/iso-time';
import type { XmlElement } from '@catchword/xml/read';
import * as z from 'zod';
import type { ParsedAnswer } from '../http/answer.ts';
import type { Caller } from '../http/caller.ts';
import { errorOf, fieldsOf, othersIn, recordsIn, unexpected } from '../http/xml-records.ts';
import { parseInput } from '../input/parse-input.ts';
import { name, type OptionsOf, only } from '../input/request-fields.ts';

export interface Licenses {
  /** One for each type of a title, expired ones included. */
  readonly licenses: readonly License[];
  /** Licensed products that the user has access to; optional. */
  readonly distributable?: number;
  /** All licenses of the user, deactivated titles included; optional. */
  readonly total?: number;
}

export const LICENSE_TYPES = ['online', 'downloadable', 'download', 'all'] as const;

const QUERY = {
  /** The book identifier; default: the whole account. Identifiers copied from a spreadsheet may have spaces around them. */
  sku: name.transform((sku) => sku.trim()).optional(),
  /** `download` is how newer services write `downloadable`. */
  type: z.enum(LICENSE_TYPES, `must be one of ${LICENSE_TYPES.join(', ')}`).optional(),
};

export type LicenseQuery = OptionsOf<typeof QUERY>;

const KNOWN = 'imprint publisher name sku isbn part_of term code-use kind type expiration'.split(' ');
const DAY_MS = 86_400_000;

/** Parses `never`, an RFC 1123 date, or an ISO date; UTC without a time zone. */
export function expirationMs(text: string | null): number | null | undefined {
  const value = text?.trim() ?? '';
  if (/^never$/i.test(value)) return null;
  const date = new Date(value);
  const ms = date.toUTCString() === value ? date.getTime() : parseIsoTime(value);
  if (ms === null) return undefined;
  return /^\d{4}-\d\d-\d\d$/.test(value) ? ms + DAY_MS : ms;
}

type LicenseType = 'online' | 'downloadable' | (string & {}) | null;

function licenseFrom(element: XmlElement) {
  const fields = fieldsOf(element);
  const field = (name: string): string | null => fields.get(name) || null;
  const expiration = field('expiration');
  return {
    /** The book identifier; empty if it is missing. */
    sku: field('sku') ?? '',
    /** `download`, which some services write, becomes `downloadable`. Other types are kept. */
    type: (field('type') === 'download' ? 'downloadable' : field('type')) as LicenseType,
    /** As the service wrote it. */
    expiration,
    /**
     * Milliseconds since 1970; null for `never`; undefined if it is missing or not a date. A date without a time includes
     * the whole day in UTC.
     */
    expiresAt: expirationMs(expiration),
    imprint: field('imprint'),
    publisher: field('publisher'),
    name: field('name'),
    isbn: field('isbn'),
    partOf: field('part_of'),
    term: field('term'),
    /** `code-api`, `add-drop`, `promotional`, `p+e`; `demo` has been seen. */
    codeUse: field('code-use'),
    kind: field('kind'),
    /** Attributes and child elements that are not in the interface. */
    others: othersIn(fields, KNOWN),
  };
}

/**
 * A license that a user holds (interface, section 2.3). Missing and empty attributes are null.
 * @rule 2.3-1..6, 3-2, 4.2-1..4, 4.2-6..8, 4.2-10, 9-1
 */
export type License = Readonly<ReturnType<typeof licenseFrom>>;

const COUNTS: readonly string[] = ['distributable_products', 'total_products'];

/** The counts are attributes of `summary` or of the root, or elements. */
function countIn(elements: readonly XmlElement[], wanted: string): number | undefined {
  for (const element of elements) {
    const own = element.name === wanted ? element.text : (element.attributes.get(wanted) ?? '');
    const count = /^\d+$/.test(own) ? Number(own) : countIn(element.children, wanted);
    if (count !== undefined) return count;
  }
  return undefined;
}

/** Whether an element is the root or the counts, and holds nothing that could be a license or an error. */
function isEmpty({ name: tag, text, attributes, children }: XmlElement): boolean {
  const isCount = ([key, value]: readonly [string, string]) => COUNTS.includes(key) && /^\d+$/.test(value);
  if (COUNTS.includes(tag)) return isCount([tag, text]);
  const isKnown = text === '' && /^(?:licenses|summary)$/.test(tag) && children.every(isEmpty);
  return isKnown && [...attributes].every((one) => isCount(one) || /^xml(?:ns)?(?::|$)/.test(one[0]));
}

function licensesFrom(answer: ParsedAnswer): Licenses {
  const { records, others } = recordsIn(answer.elements, ['license']);
  const error = errorOf(others, answer);
  if (error !== undefined) throw error;
  // An unclear answer that was taken for "not licensed" would sell a title twice.
  if (records.length === 0 && !(others.length > 0 && others.every(isEmpty))) throw unexpected('licenses', answer);
  const [distributable, total] = COUNTS.map((count) => countIn(others, count));
  return {
    licenses: records.map(licenseFrom),
    ...(distributable !== undefined && { distributable }),
    ...(total !== undefined && { total }),
  };
}

/**
 * Reads what the user of the access token holds: `GET /v3/licenses.xml` (interface, section 4.2).
 * @throws CatchwordError USAGE, SOURCE_*, SERVICE_*, XML_INVALID, INTERRUPTED; SERVICE_* for an error in a 200, too
 */
export async function readLicenses(caller: Caller, given: LicenseQuery, signal: AbortSignal): Promise<Licenses> {
  const { sku, type } = parseInput('the query of licenses', only(QUERY), given);
  const query = new URLSearchParams({
    ...(sku !== undefined && { sku }),
    ...(type !== undefined && { license_type: type }),
  });
  const read = { method: 'GET', path: '/v3/licenses.xml', format: 'xml', token: true, repeatable: true } as const;
  return await caller.call({ ...read, query, read: licensesFrom }, signal);
}

/** Without the marker of a rental (`R180`), too. */
function canonical(identifier: string): string {
  return canonicalIdentifier(identifier.trim().replace(/(.)R\d{2,4}$/, '$1'));
}

/** Whether all licenses have the same `sku` or the same `isbn`. */
function isOneTitle(licenses: readonly License[]): boolean {
  const skus = new Set(licenses.map(({ sku }) => canonical(sku)));
  const isbns = new Set(licenses.map(({ isbn }) => isbn && canonical(isbn)));
  return skus.size === 1 || (isbns.size === 1 && !isbns.has(null));
}

/**
 * Whether the answer for `sku` means that the title is owned (interface, 4.2 rule 2).
 *
 * A license counts until it expires at `nowMs`. One without a valid expiration counts too: a rejected sale can be made
 * later, but a duplicate one cannot be undone. The type does not matter. A service may list the title by any of its
 * identifiers, so an answer that names one title is trusted; if it names several, only licenses with the requested `sku` or
 * `isbn` count.
 *
 * @throws CatchwordError SERVICE_ERROR if the result depends on a license that names no title
 */
export function isOwned({ licenses }: Licenses, sku: string, nowMs: number): boolean {
  const wanted = canonical(sku);
  const named = licenses.filter((license) => license.sku !== '' || license.isbn !== null);
  const isOne = isOneTitle(named);
  const isCurrent = ({ expiresAt }: License): boolean => expiresAt == null || expiresAt > nowMs;
  const isWanted = (license: License): boolean =>
    isOne || [license.sku, license.isbn].some((name) => name !== null && canonical(name) === wanted);
  if (named.some((license) => isWanted(license) && isCurrent(license))) return true;
  if (!licenses.some((license) => !named.includes(license) && isCurrent(license))) return false;
  // It may be for this title.
  throw new CatchwordError('SERVICE_ERROR', 'the service listed a license with neither sku nor isbn', {
    hint: 'Read the licenses of the account, and ask the service whether the title is owned.',
  });
}
