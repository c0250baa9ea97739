import { createHash } from 'node:crypto';
import { CatchwordError, messageOf, usageError } from '@catchword/base/errors';
import { printable } from '@catchword/base/printable';
import { COLUMNS } from '@catchword/catalog/fields';
import { objectMembers, objectText } from '@catchword/catalog/json-text';
import { columnSql } from '../store/schema/product-views.ts';
import { onFirstUse } from '../store/schema/queries.ts';
import { openForTexts } from '../store/schema/statements.ts';
import { checkExpression, type Expression, HINT, type ViewErrorCode, withListsApart } from './check-expression.ts';
import { fieldList, isFieldList } from './field-list.ts';

/** A filter and a choice of fields, as a user wrote them. Without either, a reader gets every product whole. */
export interface ViewText {
  /** An SQL expression over the columns of the view `catalog`; null: every product. */
  readonly where: string | null;
  /** A list of members, or an SQL expression whose value is a JSON object; null: the whole product. */
  readonly fields: string | null;
}

/** What a reader gives who chooses its view itself. */
export interface GivenView {
  /** Only products for which this is true: an SQL expression over the columns of the view `catalog`, and `body`. */
  readonly where?: string | undefined;
  /** Members of a product, such as `title, variants`, or an SQL expression that yields a JSON object. */
  readonly fields?: string | undefined;
}

/** V: what a reader gets of a product. A function of the product alone. */
export interface View extends ViewText {
  /** The top-level members that it reads; null: all. A change of others cannot make it look different. */
  readonly keys: ReadonlySet<string> | null;
  /** The members that it names, as far as they are known: paths of a list, top-level members of expressions. */
  readonly paths: readonly string[];
  /** Differs if the view differs. */
  readonly digest: string;
  /** @returns JSON of what the reader gets of the product; null: it gets nothing, as for a product that an expression fails on */
  readonly of: (vbid: string, body: string) => string | null;
  /** Products that an expression failed on, so far, and the last of them. */
  readonly failures: () => { readonly count: number; readonly last: string | null };
}

/** For safety: each product is searched for each path. */
const MOST_PATHS = 200;
/** For safety: a product of 100 kB may become 12 MB, which take longer to read than SQLite takes to make them. */
const LONGEST_MADE = 4_000_000;

/** The text of an object, with the key of its product, whatever an expression makes of it. */
function withKey(vbid: string, members: Map<string, string>): string {
  const key = JSON.stringify(vbid);
  return objectText(members.has('vbid') ? members.set('vbid', key) : new Map([['vbid', key], ...members]));
}

/** One for all views: a connection takes 60 kB, which are not freed before the garbage collector runs. */
const connection = onFirstUse(openForTexts);
/** Reads JSON without making objects of it, which may take ten times its size. */
const isJson = onFirstUse(() => connection().prepare<[string], number>('SELECT json_valid(?)').pluck());

/** What an expression of fields has made. A text that it joins need not be JSON. */
function madeObject(found: unknown): string {
  if (typeof found === 'string' && found.length > LONGEST_MADE) {
    throw new Error(`the fields have more than ${LONGEST_MADE} characters`);
  }
  if (typeof found === 'string' && found.startsWith('{') && isJson().get(found) === 1) return found;
  throw new Error('the fields are not a JSON object');
}

/**
 * SQL: of the parameters (the key, the product), a row as the view `catalog` has it, with the columns that expressions name,
 * read or not: SQLite needs `title` for `title = 'x' OR 1`, too.
 */
function rowSql(expressions: string): string {
  const words = new Set(expressions.toLowerCase().match(/\w+/g));
  const read = COLUMNS.filter(({ column }) => words.has(column)).map(
    (field) => `, ${columnSql(field)} AS ${field.column}`,
  );
  return `SELECT vbid, body${read.join('')} FROM (SELECT CAST(? AS TEXT) AS vbid, CAST(? AS TEXT) AS body)`;
}

/** @param name for the error @throws CatchwordError with `code`: the analysis reads a table, which has names of its own */
function prepareJudge(query: string, name: string, code: ViewErrorCode) {
  try {
    return connection().prepare<[string, string], unknown>(query).pluck();
  } catch (error) {
    throw new CatchwordError(code, `${name}: ${messageOf(error)}`, { hint: HINT });
  }
}

/**
 * Prepares a view.
 * @param names of settings, options or parameters, for errors
 * @param code of errors; null: the view of what a store has already. An earlier version may have accepted more.
 * @throws CatchwordError with `code`, CONFIG_INVALID by default
 */
export function compileView(
  text: ViewText,
  names: { readonly where: string; readonly fields: string },
  code: ViewErrorCode | null = 'CONFIG_INVALID',
): View {
  const { where, fields } = text;
  const filter: Expression | null = where === null ? null : checkExpression(where, names.where, code);
  const list = fields !== null && isFieldList(fields) ? fieldList(fields) : null;
  if (code !== null && new Set(list?.paths).size > MOST_PATHS) {
    throw new CatchwordError(code, `${names.fields}: it names more than ${MOST_PATHS} members`, {
      hint: 'Name the member that has them, such as metadata, or choose all.',
    });
  }
  const made = fields === null || list !== null ? null : checkExpression(fields, names.fields, code);
  const chosen: Pick<Expression, 'keys'> = list ?? made ?? { keys: null };
  const keys =
    chosen.keys === null || filter?.keys === null ? null : new Set([...chosen.keys, ...(filter?.keys ?? [])]);
  // A dot in a name that an expression reads leads nowhere.
  const named = [...(made?.keys ?? []), ...(filter?.keys ?? [])].filter((name) => !name.includes('.'));
  const paths = [...(list?.paths ?? []), ...named];
  const both = JSON.stringify([where, fields]);
  const digest = createHash('sha256').update(both).digest('hex').slice(0, 12);

  const value = made === null ? '1' : `(\n${fields}\n)`;
  // With LIMIT, SQLite computes each column once, not for each element that json_each reads.
  const query = `SELECT ${value} FROM (${rowSql(`${where} ${value}`)} LIMIT 1) AS catalog WHERE (\n${where ?? '1'}\n)`;
  const judge =
    filter === null && made === null
      ? null
      : prepareJudge(withListsApart(query), made === null ? names.where : names.fields, code ?? 'CONFIG_INVALID');
  let failures: ReturnType<View['failures']> = { count: 0, last: null };

  function viewOf(vbid: string, body: string): string | null {
    const found = judge === null ? 1 : judge.get(vbid, body);
    if (found === undefined) return null;
    if (list !== null) return withKey(vbid, list.pick(body));
    if (made === null) return body;
    return withKey(vbid, objectMembers(madeObject(found)));
  }

  return {
    where,
    fields,
    keys,
    paths,
    digest,
    of: (vbid, body) => {
      try {
        return viewOf(vbid, body);
      } catch (error) {
        failures = { count: failures.count + 1, last: printable(`${vbid}: ${messageOf(error)}`) };
        return null;
      }
    },
    failures: () => failures,
  };
}

/** As `compileView`; null for whole products. */
export function viewOrNull(
  text: ViewText,
  names: Parameters<typeof compileView>[1],
  code?: ViewErrorCode | null,
): View | null {
  return text.where === null && text.fields === null ? null : compileView(text, names, code);
}

/**
 * JSON of what a reader gets of a product, whose `body` is null if it is not there; null: nothing.
 * @param view null: every product whole
 */
export function seenBy(
  view: Pick<View, 'of'> | null,
  { vbid, body }: { readonly vbid: string; readonly body: string | null },
): string | null {
  return body === null || view === null ? body : view.of(vbid, body);
}

/**
 * The view of a reader who chooses it itself; null for whole products.
 * @param prefix of the names of the two, for errors
 * @throws CatchwordError USAGE, also for an empty text, such as a variable that is not set: it would choose all
 */
export function readerView({ where, fields }: GivenView, prefix = ''): View | null {
  const empty = Object.entries({ where, fields }).find(([, given]) => given?.trim() === '');
  if (empty !== undefined) throw usageError(`${prefix}${empty[0]} is empty`, 'Omit it to get all.');
  return viewOrNull(viewText(where, fields), { where: `${prefix}where`, fields: `${prefix}fields` }, 'USAGE');
}

/** A text that is empty counts as absent. */
export function viewText(where: string | undefined, fields: string | undefined): ViewText {
  const text = (given: string | undefined): string | null => given?.trim() || null;
  return { where: text(where), fields: text(fields) };
}
