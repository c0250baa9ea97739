import { CatchwordError, messageOf } from '@catchword/base/errors';
import { nearestName } from '@catchword/base/nearest-name';
import { COLUMNS, STORED } from '@catchword/catalog/fields';
import type { Database } from 'better-sqlite3';
import { onFirstUse } from '../store/schema/queries.ts';
import { openForTexts } from '../store/schema/statements.ts';
import { costOf } from './expression-cost.ts';
import { type Instruction, type Program, readProgram } from './sql-program.ts';

/*
 * Which SQL expressions a view may have: functions of the product alone, whose cost grows as the product does and not
 * faster. What an expression uses is read from the program that SQLite makes of it, not from its text.
 */

/** What an expression reads. */
export interface Expression {
  /** Top-level members of the product; null if all. */
  readonly keys: ReadonlySet<string> | null;
}

export type ViewErrorCode = 'CONFIG_INVALID' | 'USAGE';

/** For safety: SQLite prepares a longer text in time that grows with its length. */
const LONGEST = 10_000;
/** For safety: each loop parses the JSON that it reads. */
const MOST_LOOPS = 16;
/** For safety: each `||` copies the result of the earlier ones. */
const MOST_CONCATS = 32;
/** For safety: a function may take 10 ms on 1 MB. */
const MOST_CALLS = 100;
/** For safety: a search takes as long as both lengths, multiplied. All together, in characters. */
const MOST_SEARCHED = 400;
/** For safety: 1 MB may have 500,000 elements, and SQLite may do an instruction of a loop for each of them. */
const MOST_IN_LOOPS = 250;
/** For safety: a loop may copy and search a literal for each element. */
const LONGEST_WITH_LOOPS = 50;
/** For safety: reading a program takes longer than its length grows. */
const MOST_INSTRUCTIONS = 4_000;
/** For safety: what functions read and make of the product, in multiples of it. 250 of 100 kB take about 100 ms. */
const MOST_COPIES = 250;
/** The column of `json_each` that has all that it reads. */
const WHOLE_JSON = 8;
export const HINT = 'docs/views.md has what an expression may use, and examples.';
const JSON_EACH = "Read the elements of an array with: EXISTS (SELECT 1 FROM json_each(body, '$.MEMBER') v WHERE …).";

const OF_TIME = /^(current_(date|time|timestamp)|date|time|datetime|julianday|unixepoch|strftime|timediff)$/;
const TODAY =
  "Compare with a date that you write, such as substr(on_sale_date, 1, 10) <= '2027-01-31', and ask for today in the query that reads the store: docs/views.md has both.";

/** Columns of the view `catalog` that the mirror adds to the product. */
const OF_MIRROR = ['id', 'first_seen_at', 'changed_at', 'changed_seq'];

/** Deterministic, and the result is about as long as the arguments, unless the function escapes. */
const FUNCTIONS = new Set(
  `-> ->> json json_array json_array_length json_extract json_group_array json_group_object json_insert json_object json_quote
   json_remove json_replace json_set json_type json_valid abs avg ceil ceiling coalesce count floor glob group_concat ifnull iif
   instr length like lower ltrim max min nullif octet_length round rtrim sign string_agg substr substring sum total trim typeof
   unicode upper`.split(/\s+/),
);
/** The argument that must be a literal, because the time grows with the product of both lengths. */
const LITERAL_ARGUMENT: Readonly<Record<string, number>> = { like: 0, glob: 0, instr: 1, trim: 1, ltrim: 1, rtrim: 1 };
/** Functions with any number of arguments. */
const ANY_ARGUMENTS = 'json_array json_extract json_insert json_object json_remove json_replace json_set max min'.split(
  ' ',
);
/** Up to so many are counted; of a call with more, arguments of other calls may be counted too. */
const MOST_LISTED = 100;
const WITH_PATH = new Set(['->', '->>', 'json_array_length', 'json_extract', 'json_type']);

const READABLE = ['vbid', ...COLUMNS.map(({ column }) => column), 'body'];
const BODY = READABLE.length - 1;
const TEXTS = new Set(['vbid', 'body', ...STORED.map(({ column }) => column)]);

type Invalid = (problem: string, hint?: string) => CatchwordError;

const TOKEN = /'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]|--[^\n]*|\/\*[\s\S]*?\*\/|[A-Za-z_]\w*|\S/g;

/**
 * The expression, with a sign before each EXISTS, which changes nothing but how SQLite evaluates it: it would read the list of
 * an EXISTS again for each element of another one that AND joins with it.
 */
export function withListsApart(text: string): string {
  return text.replace(TOKEN, (token) => (/^exists$/i.test(token) ? `+${token}` : token));
}

/**
 * Rejects what would let SQLite work long before there is a program: it copies the columns of a query in FROM into each
 * place that names them. GROUP BY, whose subroutine for each group is not within the loop that calls it. And a parenthesis
 * that closes one that the expression did not open.
 */
function checkText(text: string, invalid: Invalid): void {
  if (text.length > LONGEST) throw invalid(`it has more than ${LONGEST} characters`);
  /** Whether each open parenthesis has a query. */
  const open: boolean[] = [];
  let before = '';
  for (const [token] of text.matchAll(TOKEN)) {
    if (/^(--|\/\*)/.test(token)) continue;
    const word = token.toUpperCase();
    if (/^(WITH|VALUES|RECURSIVE|GROUP|MAIN)$/.test(word)) throw invalid(`${word} is not available`, HINT);
    if (token === ';') throw invalid('there is more than one statement', HINT);
    if (word === 'SELECT' && open.pop() !== undefined) open.push(true);
    const isSource = /^(FROM|JOIN)$/.test(before) || (before === ',' && open.at(-1) === true);
    if (token === '(' && isSource) throw invalid('a query in FROM is not available', JSON_EACH);
    if (token === '(') open.push(false);
    if (token === ')' && open.pop() === undefined) throw invalid('a parenthesis is closed that was not opened');
    before = word;
  }
  if (open.length > 0) throw invalid('a parenthesis is not closed');
}

function openAnalysis(): Database {
  const sqlite = openForTexts();
  sqlite.exec(`CREATE TABLE catalog (${READABLE.map((name) => (TEXTS.has(name) ? `${name} TEXT` : name)).join(', ')})`);
  // Else EXPLAIN would not list how many arguments they have.
  for (const name of ANY_ARGUMENTS) {
    for (let count = name.startsWith('json') ? 1 : 2; count <= MOST_LISTED; count++) {
      const listed = Object.defineProperty(() => null, 'length', { value: count });
      sqlite.function(name, { deterministic: true }, listed);
    }
  }
  return sqlite;
}

const analysis = onFirstUse(openAnalysis);

function explain(sqlite: Database, text: string): Instruction[] {
  return sqlite.prepare<[], Instruction>(`EXPLAIN SELECT 1 FROM catalog WHERE (\n${withListsApart(text)}\n)`).all();
}

function unprepared(error: unknown, invalid: Invalid): CatchwordError {
  const message = messageOf(error);
  const [, what = '', name = ''] = /^no such (column|table): (\S+)/.exec(message) ?? [];
  if (what === 'table') return invalid(`${name} cannot be read here`, JSON_EACH);
  if (OF_MIRROR.includes(name)) return invalid(`${name} is a column of the mirror, not of the product`, HINT);
  const near = what === '' ? undefined : nearestName(name, READABLE);
  return invalid(message, near === undefined ? HINT : `Did you mean ${near}? ${HINT}`);
}

/** Rejects names that do not belong to the product. @param each the virtual table of `json_each` */
function checkSources({ of, calls }: Program, each: string | null, invalid: Invalid): void {
  if (of('Variable').length > 0) throw invalid('it has a parameter', HINT);
  const isOther = of('OpenRead').length > 1 || of('VOpen').some(({ p4 }) => p4 !== each);
  if (isOther || of('Rowid').length > 0) throw invalid('it reads more than the product', JSON_EACH);
  for (const { name } of calls) {
    if (FUNCTIONS.has(name)) continue;
    throw invalid(`the function ${name} is not available`, OF_TIME.test(name) ? TODAY : HINT);
  }
}

/** Rejects what takes longer than a few readings of the product. */
function checkCost(program: Program, text: string, invalid: Invalid): void {
  const { of, loops, loopAround, writersOf, writerOf, literalIn, isOfElement, calls, loopCost, jumpsBack } = program;
  let searchedChars = 0;
  // NOT IN looks at the first row of the list only.
  const isLooped = of('Rewind').filter(({ p1 }) => of('Next').some((next) => next.p1 === p1)).length > 1;
  if (jumpsBack.length > 0 || of('Yield', 'OpenAutoindex', 'Prev', 'Gosub').length > 0 || isLooped) {
    throw invalid('it has a loop of its own', JSON_EACH);
  }
  if (loops.length > MOST_LOOPS) throw invalid(`it has more than ${MOST_LOOPS} times json_each`);
  if (calls.length > MOST_CALLS) throw invalid(`it calls functions more than ${MOST_CALLS} times`);
  if (loopCost > MOST_IN_LOOPS) throw invalid('it does too much for each element that json_each reads');
  if (loops.length > 0 && of('String8').some(({ p4 }) => (p4?.length ?? 0) > LONGEST_WITH_LOOPS)) {
    throw invalid(`with json_each, a literal has at most ${LONGEST_WITH_LOOPS} characters`);
  }
  if (of('Concat').length > MOST_CONCATS) throw invalid(`it has more than ${MOST_CONCATS} times ||`);
  if (of('VColumn').some(({ p2 }) => p2 === WHOLE_JSON)) {
    throw invalid('json of json_each is the whole product again, for each element', JSON_EACH);
  }
  for (const { addr, p3 } of of('VFilter')) {
    // Its columns `fullkey`, `path` and `root` repeat the path for each element.
    if (writerOf(p3 + 1, addr)?.p1 === 2 && literalIn(p3 + 3, addr) === null)
      throw invalid('the path of json_each must be a literal', JSON_EACH);
    const outer = loopAround(addr);
    if (outer !== undefined && !isOfElement(p3 + 2, addr, outer)) {
      throw invalid(
        'a json_each within another one reads the same again for each element',
        "Let it read the element: json_each(body, '$.OUTER') a, json_each(a.value, '$.INNER') b. Ask about two lists of the product side by side: EXISTS (…) AND NOT EXISTS (…), as docs/views.md does for sales rights.",
      );
    }
  }
  for (const { at, name, args, isConstant } of calls) {
    const literal = LITERAL_ARGUMENT[name];
    if (literal !== undefined && literal < args.length) {
      if (!isConstant(literal)) throw invalid(`what ${name} searches for must be a literal, such as '%word%'`);
      // What is computed of literals is not longer than the whole text.
      const { length } = literalIn(at.p2 + literal, at.addr) ?? text;
      searchedChars += loopAround(at.addr) === undefined ? length : 10 * length;
      if (searchedChars > MOST_SEARCHED)
        throw invalid(`it searches for more than ${MOST_SEARCHED} characters together`);
    }
  }
  const copies = [
    ...calls.map(({ at, name, args }) => ({ at, args, does: `${name} reads the product again` })),
    ...of('Concat').map((at) => ({ at, args: [at.p1, at.p2], does: '|| copies a field of the product' })),
    ...of('MakeRecord').map((at) => ({
      at,
      args: Array.from({ length: at.p2 }, (_, place) => at.p1 + place),
      does: 'sorting, grouping or comparing copies a field of the product',
    })),
  ];
  for (const { at, args, does } of copies) {
    const loop = loopAround(at.addr);
    const isOfProduct = (register: number): boolean => {
      // A record may have columns of sorted rows, which have cursors of their own.
      return writersOf(register, at.addr, loop?.from).some(
        ({ opcode, p1 }) => opcode === 'Column' && (at.opcode !== 'MakeRecord' || p1 === 0),
      );
    };
    if (loop !== undefined && args.some(isOfProduct)) throw invalid(`${does} for each element`);
  }
}

/** The member that a path begins with; null if it is not known. @param name the function that takes the path */
function keyOf(path: string | null, name: string): string | null {
  if (path === null) return null;
  // SQLite makes this path of a name, too.
  const full = name.startsWith('->') && !path.startsWith('$') ? `$."${path}"` : path;
  return /^\$\.([^".[][^.[]*)/.exec(full)?.[1] ?? /^\$\."([^"\\]+)"/.exec(full)?.[1] ?? null;
}

/** The member that a program reads from a body in a register; null if it may be any. */
function keyFromBody({ of, calls, literalIn, writerOf }: Program, loaded: Instruction): string | null {
  const { addr, p3: register } = loaded;
  const reads = calls
    .filter(({ args }) => args.includes(register))
    .map(({ at, name, args }) => ({
      addr: at.addr,
      name: args[0] === register && args.length === 2 && WITH_PATH.has(name) ? name : '',
      path: literalIn(register + 1, at.addr),
    }));
  const each = of('VFilter').filter(({ p3 }) => p3 === register - 2);
  reads.push(...each.map((at) => ({ addr: at.addr, name: 'json_each', path: literalIn(register + 1, at.addr) })));
  const [first] = reads.filter((read) => read.addr > addr).sort((a, b) => a.addr - b.addr);
  if (first === undefined || writerOf(register, first.addr) !== loaded) return null;
  // Another instruction in between may copy the body.
  const isCopied = of('Copy', 'SCopy', 'Concat').some(
    (one) => one.addr > addr && one.addr < first.addr && one.p1 === register,
  );
  return first.name === '' || isCopied ? null : keyOf(first.path, first.name);
}

function readsOf(program: Program): Expression {
  const loaded = program.of('Column').filter(({ p1 }) => p1 === 0);
  const columns = new Set(loaded.map(({ p2 }) => READABLE[p2] ?? ''));
  const keys = COLUMNS.filter(({ column }) => columns.has(column)).map(({ key }) => key);
  const fromBody = loaded.filter(({ p2 }) => p2 === BODY).map((one) => keyFromBody(program, one));
  const isKnown = (key: string | null): key is string => key !== null;
  return { keys: fromBody.every(isKnown) ? new Set([...keys, ...fromBody]) : null };
}

/**
 * Checks an expression, in milliseconds.
 * @param name of the setting or option, for errors
 * @param code of errors; null: it was accepted before, maybe by another version, and only what it reads is asked for
 * @throws CatchwordError
 */
export function checkExpression(text: string, name: string, code: ViewErrorCode | null): Expression {
  const invalid: Invalid = (problem, hint) =>
    new CatchwordError(code ?? 'CONFIG_INVALID', `${name}: ${problem}`, hint === undefined ? {} : { hint });
  if (code !== null) checkText(text, invalid);
  const sqlite = analysis();
  let listed: Instruction[];
  try {
    listed = explain(sqlite, text);
  } catch (error) {
    throw unprepared(error, invalid);
  }
  if (code === null) return readsOf(readProgram(listed));
  if (listed.length > MOST_INSTRUCTIONS)
    throw invalid(`SQLite needs more than ${MOST_INSTRUCTIONS} instructions for it`);
  const program = readProgram(listed);
  const each = explain(sqlite, "EXISTS (SELECT 1 FROM json_each('[]'))").find(({ opcode }) => opcode === 'VOpen');
  checkSources(program, each?.p4 ?? null, invalid);
  checkCost(program, text, invalid);
  const { cost, isLoopLonger, unknown } = costOf(listed, program);
  if (unknown !== undefined) throw invalid(`SQLite does ${unknown} for it, and what that costs is not known`, HINT);
  if (isLoopLonger) throw invalid('json_each reads JSON that the expression makes', JSON_EACH);
  if (cost > MOST_COPIES) throw invalid(`it reads and makes more than ${MOST_COPIES} times the product`, HINT);
  return readsOf(program);
}
