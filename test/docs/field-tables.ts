import { COLUMNS, type Field, type Form, PARTS, PRICE_FIELDS, READ, STORED } from '@catchword/catalog/fields';
import type { SinkKind } from '@catchword/sink-kit/sink-kind';
import { mysqlLayout } from '@catchword/sink-sql/mysql/mysql-layout';
import { LAYOUT } from '@catchword/sink-sql/postgres/postgres-layout';
import * as z from 'zod';
import { formsOf, KINDS } from '../../src/relay/kinds/kinds.ts';
import { CHANNEL } from '../../src/shown/shown-channel.ts';
import { DECISION } from '../../src/shown/shown-decision.ts';
import { PARKED } from '../../src/shown/shown-parked.ts';
import { PROBLEM } from '../../src/shown/shown-problem.ts';
import { PROCESS } from '../../src/shown/shown-process.ts';
import { REJECTED } from '../../src/shown/shown-rejected.ts';
import type { Row } from '../../src/shown/shown-row.ts';
import { RUN } from '../../src/shown/shown-run.ts';
import { SINK, SINK_STATES } from '../../src/shown/shown-sink.ts';
import { STATUS } from '../../src/shown/shown-status.ts';
import { tableOf } from './reference.ts';

/* The tables of fields, and of things that people look at, in pages that are otherwise written by hand. Each follows a comment with its name. */

type Line = readonly [column: string, type: string, about: string];

const FORMS: Partial<Record<Form, string>> = {
  names: 'text: names, joined by `; `',
  sellable: '0 or 1',
  texts: 'text: a JSON array',
};

const line = (column: string, type: string, about: string): Line => [`\`${column}\``, type, about];
const inView = ({ column, form, about }: Field): Line => line(column, FORMS[form] ?? 'text', about);
const inPostgres = ({ column, form, about }: Field): Line =>
  line(column, form === 'names' ? (FORMS.names ?? '') : (LAYOUT.products[column] ?? ''), about);

/** Without the collation, which differs between the servers. */
const MYSQL_TYPES = mysqlLayout(true).products;
const inMysql = ({ column, form, about }: Field): Line =>
  line(
    column,
    form === 'names'
      ? (FORMS.names ?? '').replace('text', 'longtext')
      : form === 'texts'
        ? 'longtext: JSON'
        : (MYSQL_TYPES[column] ?? ''),
    about,
  );

const KEY = line('vbid', 'text', 'The key of the product.');
const inPart = ({ column, form, about }: (typeof PARTS)['contributors' | 'identifiers'][number]): Line =>
  line(column, form === 'whole' ? 'number' : 'text', about);

const TABLES: Readonly<Record<string, readonly Line[]>> = {
  catalog: [
    KEY,
    ...STORED.map(inView),
    line('body', 'text', "The source's JSON, unchanged."),
    line('first_seen_at', 'text', 'When the product was first written here.'),
    line('changed_at', 'text', 'When it was last written here.'),
    line('changed_seq', 'number', 'The number of its newest change.'),
    line('id', 'number', 'Whole, stable as long as the mirror is.'),
    ...READ.map(inView),
  ],
  prices: [
    KEY,
    ...PRICE_FIELDS.map(({ column, form, of, about }) =>
      line(column, form === 'sellable' ? '0 or 1' : form, of === 'variant' ? `Of the variant: ${about}` : about),
    ),
  ],
  contributors: [KEY, ...PARTS.contributors.map(inPart)],
  identifiers: [KEY, ...PARTS.identifiers.map(inPart)],
  mysql: [
    line('vbid', 'varchar(255)', 'The key of the product, and of the table.'),
    ...COLUMNS.map(inMysql),
    line('body', 'longtext: JSON', "The source's JSON, byte by byte."),
    line('seq', 'bigint', 'The number of its newest change.'),
    line('changed_at', 'datetime(3)', 'When it last changed, in UTC.'),
    line('removed_at', 'datetime(3)', 'When it was removed; null if it was not.'),
  ],
  postgres: [
    line('vbid', 'text', 'The key of the product, and of the table.'),
    ...COLUMNS.map(inPostgres),
    line('body', 'jsonb', "The source's JSON."),
    line('seq', 'bigint', 'The number of its newest change.'),
    line('changed_at', 'timestamptz', 'When it last changed.'),
    line('removed_at', 'timestamptz', 'When it was removed; null if it was not.'),
  ],
};

/** Things that `src/shown` declares, by the names of their tables. */
const SHOWN: Readonly<Record<string, readonly Row<never>[]>> = {
  status: STATUS,
  run: RUN,
  sink: SINK,
  decision: DECISION,
  problem: PROBLEM,
  channel: CHANNEL,
  parked: PARKED,
  rejected: REJECTED,
  process: PROCESS,
};

type Described = { readonly type?: string | readonly string[]; readonly format?: string };

/** The type of a member in JSON: `number or null`. */
function typeOf(schema: z.ZodType): string {
  const described = z.toJSONSchema(schema, { unrepresentable: 'any' }) as Described & { anyOf?: readonly Described[] };
  const types = (described.anyOf ?? [described]).flatMap(({ type = 'object', format }) =>
    format === 'date-time' ? 'time' : type,
  );
  return types.join(' or ').replace('integer', 'number').replace('string', 'text');
}

/** The members of a thing, with the names that people see. */
function membersOf(rows: readonly Row<never>[]): string {
  const lines = rows.flatMap(({ key, label = '', schema, about }) =>
    schema === undefined ? [] : [[`\`${key}\``, label, typeOf(schema), about]],
  );
  return tableOf(['member', 'for people', 'type', ''], lines);
}

function statesOfSinks(): string {
  const lines = Object.entries(SINK_STATES).map(([state, [, about, todo, label]]) => {
    return [label === undefined ? `\`${state}\`` : `\`${state}\` (for people: ${label})`, about, todo];
  });
  return tableOf(['state', 'meaning', 'what to do'], lines);
}

/** The kinds of sinks, by their addresses. */
function kindsOfSinks(): string {
  const lines = Object.entries(KINDS).map(([kind, described]) => {
    const forms = formsOf(described).map((one) => `\`${one}\``);
    return [forms.join(', '), described.stores, `[stores/${kind}.md](stores/${kind}.md)`];
  });
  return tableOf(['address', 'stores', 'page'], lines);
}

/** The options of a kind of sinks, with those of every sink. */
function optionsOf({ options, drops, incomparable }: SinkKind): string {
  const own = Object.values(options).flatMap((type) => Object.entries((type as z.ZodType).meta() ?? {}));
  const except = drops === undefined ? '' : `; not with \`${drops}\``;
  const verify = `the store is [compared with its source](../verify.md) every seven days${except}`;
  const all: readonly (readonly [string, unknown])[] = [
    ...own,
    ['refused=stop', 'the sink stops at an event that the store refuses for good, instead of parking it'],
    ...(incomparable === undefined ? [['verify=7d', verify] as const] : []),
  ];
  return tableOf(
    ['option', 'for'],
    all.map(([written, about]) => [`\`${written}\``, String(about)]),
  );
}

/** What tells the stores of a kind apart. */
function identitiesOfSinks(): string {
  return tableOf(
    ['kind', 'compared'],
    Object.entries(KINDS).map(([kind, { identity }]) => [`\`${kind}\``, identity]),
  );
}

function tableText(name: string): string {
  if (name === 'sink_states') return statesOfSinks();
  if (name === 'sink_kinds') return kindsOfSinks();
  if (name === 'sink_identities') return identitiesOfSinks();
  const kind = KINDS[name.replace(/_options$/, '')];
  if (kind !== undefined && name.endsWith('_options')) return optionsOf(kind);
  const rows = SHOWN[name];
  return rows === undefined ? tableOf(['column', 'type', ''], TABLES[name] ?? []) : membersOf(rows);
}

/** The page with its tables as the sources have them. */
export function withFieldTables(page: string): string {
  return page.replace(
    /(<!-- `npm run docs` writes this table: (\w+) -->\n\n)(?:\|.*\n)*/g,
    (_, head: string, name: string) => `${head}${tableText(name)}\n`,
  );
}
