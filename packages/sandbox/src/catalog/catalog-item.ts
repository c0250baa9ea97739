import { isbn10 } from '@catchword/base/isbn';
import type { Numbering } from './product-numbers.ts';
import type { Product } from './product-states.ts';
import { hash } from './random.ts';
import * as WORDS from './title-words.ts';

/** The values of `include_details`. @rule 2.5-2..3, 4.4-15 */
export const DETAIL_GROUPS = ['metadata', 'subjects', 'identifiers', 'accessibility', 'accessibility_claims'] as const;
export type DetailGroup = (typeof DETAIL_GROUPS)[number];

/** The fields of one reply's items, besides the lean ones. */
export interface ItemShape {
  /** Whether products have about 2 KB, or about 110 bytes. */
  readonly details: boolean;
  readonly groups: ReadonlySet<DetailGroup>;
  /** Only prices in these; null: in all. */
  readonly currencies: ReadonlySet<string> | null;
}

export const EVERY_MEMBER: ItemShape = { details: true, groups: new Set(DETAIL_GROUPS), currencies: null };

interface Subject {
  readonly version: number;
  readonly vbid: string;
  readonly print: string | null;
  readonly electronic: string | null;
}

/** Draws one number for each product and purpose. The purposes have different numbers. */
type Draw = (purpose: number, bound: number) => number;

function pick(words: readonly string[], draw: Draw, purpose: number): string {
  return words[draw(purpose, words.length)] ?? '';
}

function date(draw: Draw, purpose: number): string {
  const day = (value: number) => String(value + 1).padStart(2, '0');
  return `${1995 + draw(purpose, 30)}-${day(draw(purpose + 1, 12))}-${day(draw(purpose + 2, 28))}`;
}

function orNull(isbn: string | null): string {
  return isbn === null ? 'null' : `"${isbn}"`;
}

/** One product in 32 has its print ISBN as a number, one in four its `fpid` too. */
function identifiers({ vbid, print, electronic }: Subject, all: boolean, draw: Draw): string {
  const printValue = print !== null && draw(30, 32) === 0 ? print : orNull(print);
  const canonical = `"print_isbn_canonical":${printValue},"eisbn_canonical":${orNull(electronic)}`;
  if (!all) return `"identifiers":{${canonical}}`;
  const fpid = 1_000_000 + draw(31, 9_000_000);
  const pair = (prefix: string, isbn: string | null) =>
    isbn === null ? '' : `,"${prefix}":"${isbn}","${prefix}_10":"${isbn10(isbn)}","${prefix}_13":"${isbn}"`;
  return (
    `"identifiers":{${canonical},"isbn_canonical":"${vbid}","isbn_10":"${isbn10(vbid)}","isbn_13":"${vbid}"` +
    `${pair('e_isbn', electronic)}${pair('print_isbn', print)},"vbid10_alias":["${isbn10(vbid)}"],` +
    `"vbid13_alias":["${vbid}"],"fpid":${draw(32, 4) === 0 ? fpid : `"${fpid}"`}}`
  );
}

/** Prices change with the version. One product in 16 has prices as strings. */
function variants({ vbid, version }: Subject, currencies: ReadonlySet<string> | null, draw: Draw): string {
  const quote = draw(40, 16) === 0 ? '"' : '';
  const variant = (sku: string, type: string, duration: string, share: number) => {
    const prices = WORDS.CURRENCIES.filter((code) => currencies?.has(code) ?? true).map((code, at) => {
      const cents = Math.round((900 + draw(41, 19_000) + 25 * version + 100 * at) * share);
      return `{"type":"digital_list_price","value":${quote}${(cents / 100).toFixed(2)}${quote},"currency":"${code}"}`;
    });
    return (
      `{"sku":"${sku}","type":"${type}","duration":"${duration}","online_duration":"${duration}",` +
      `"distributable":true,"prices":[${prices.join(',')}],"updated":"${date(draw, 42)}T00:00:00Z"}`
    );
  };
  return `"variants":[${variant(vbid, 'single', 'perpetual', 1)},${variant(`${vbid}R180`, 'rental', '180', 0.4)}]`;
}

/** A number, but a string for one product in 16, and the word "null" for one in 64. */
function edition(draw: Draw): string {
  const oddity = draw(50, 64);
  const number = draw(51, 12);
  return oddity === 0 ? '"null"' : oddity <= 4 ? `"${number}"` : String(number);
}

/** A number of pages, within the bounds of an asset's limit (interface, section 8). -1: unlimited. */
function printLimit(draw: Draw): number {
  const pages = draw(19, 50);
  return pages < 2 ? -1 : pages;
}

function baseMembers(subject: Subject, draw: Draw): string {
  const { vbid } = subject;
  const title = `${pick(WORDS.OPENINGS, draw, 1)} ${pick(WORDS.QUALITIES, draw, 2)} ${pick(WORDS.FIELDS, draw, 3)}`;
  const person = (purpose: number) =>
    `${pick(WORDS.FIRST_NAMES, draw, purpose)} ${pick(WORDS.LAST_NAMES, draw, purpose + 1)}`;
  const country = draw(20, WORDS.COUNTRIES.length);
  const rights = [...WORDS.COUNTRIES.slice(country), ...WORDS.COUNTRIES.slice(0, country)].slice(0, 10);
  const link = (name: string, path: string) => `"${name}":"https://resources.example.org/products/${vbid}/${path}"`;
  return (
    `"kind":"${pick(WORDS.KINDS, draw, 4)}","title":"${title}","subtitle":"${pick(WORDS.SUBTITLES, draw, 5)}",` +
    `"format":"${pick(WORDS.FORMATS, draw, 6)}","publisher":"${pick(WORDS.PUBLISHERS, draw, 7)}","edition":${edition(draw)},` +
    `"contributors":[{"name":"${person(8)}","type":"author"},{"name":"${person(10)}","type":"editor"}],` +
    `"language":"${pick(WORDS.LANGUAGES, draw, 12)}","created":"${date(draw, 13)}T08:00:00Z",` +
    `"on_sale_date":"${date(draw, 16)}","off_sale_date":null,"print_restrictions":${printLimit(draw)},` +
    `"copy_restrictions":-1,"resource_links":{${link('metadata', 'metadata')},${link('cover_image', 'cover.jpg')},` +
    `${link('table_of_contents', 'contents')},${link('store_url', 'store')}},` +
    `"sales_rights":[${rights.map((code) => `"${code}"`).join(',')}],"exclude_sales_rights":[]`
  );
}

function groupMembers(groups: ReadonlySet<DetailGroup>, draw: Draw): string[] {
  const members: string[] = [];
  const field = pick(WORDS.FIELDS, draw, 3);
  const quality = pick(WORDS.QUALITIES, draw, 2);
  if (groups.has('subjects')) {
    const subject = (name: string, code: number) =>
      `{"name":"${name}","code":"${String(code).padStart(6, 'A')}","schema":"bisac"}`;
    members.push(
      `"subjects":[${subject(field, draw(60, 1000))},${subject(pick(WORDS.FIELDS, draw, 61), draw(62, 1000))}]`,
    );
  }
  if (groups.has('metadata')) {
    const year = 1995 + draw(16, 30);
    members.push(
      `"metadata":{"description":"A book about ${quality.toLowerCase()} ${field.toLowerCase()}, ` +
        `with examples from ${pick(WORDS.FIELDS, draw, 63).toLowerCase()} and ${pick(WORDS.FIELDS, draw, 64).toLowerCase()}.",` +
        `"publication_date":"${date(draw, 16)}","copyright_date":"${year}",` +
        `"imprint_name":"${pick(WORDS.PUBLISHERS, draw, 65)}","page_count":${80 + draw(66, 900)}}`,
    );
  }
  if (groups.has('accessibility') || groups.has('accessibility_claims')) {
    members.push('"accessibility_claims":["textToSpeech","structuralNavigation","alternativeText"]');
  }
  return members;
}

export type RenderItem = (product: Pick<Product, 'index' | 'version' | 'withdrawn'>) => string;

/** The text depends only on seed, product and shape. A few products have the oddities that services show. */
export function itemRenderer(seed: number, numbering: Numbering, shape: ItemShape): RenderItem {
  const { details, groups, currencies } = shape;
  return ({ index, version, withdrawn }) => {
    const vbid = numbering.vbid(index);
    const print = numbering.printIsbn(index);
    const electronic = numbering.eIsbn(index, version);
    const end = withdrawn ? ',"distributable":false}' : '}';
    if (!details && groups.size === 0) {
      const isbns = `"print_isbn_canonical":${orNull(print)},"eisbn_canonical":${orNull(electronic)}`;
      return `{"vbid":"${vbid}","identifiers":{${isbns}}${end}`;
    }
    const draw: Draw = (purpose, bound) => hash(seed, index, 100 + purpose) % bound;
    const subject = { vbid, version, print, electronic };
    const members = [`{"vbid":"${vbid}"`, identifiers(subject, details || groups.has('identifiers'), draw)];
    if (details) members.push(baseMembers(subject, draw), variants(subject, currencies, draw));
    return [...members, ...groupMembers(groups, draw)].join(',') + end;
  };
}
