import { execFile, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { postgresAvailable, usePostgres } from '@catchword/testing/postgres';
import { query } from '@catchword/testing/sqlite';
import { beforeAll, describe, expect, it } from 'vitest';
import { openHarness } from '../../../src/contract/harness.ts';
import { configAt } from '../../../test/relay/feeding.ts';

/* What a shop does with the tables, as docs/stores/postgres.md shows it, and with the views of docs/sql.md. */

const execute = promisify(execFile);
const page = (path: string): string => readFileSync(new URL(`../../../docs/${path}`, import.meta.url), 'utf8');
const EXAMPLES = fileURLToPath(new URL('../../../examples', import.meta.url));
const POSTGRES = page('stores/postgres.md');

function block(language: string, text: string): string {
  const [, code = ''] = new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'm').exec(text) ?? [];
  return code;
}

/** Whether a program has its libraries. CI fails without them; elsewhere the tests with it are left out. */
function has(command: string, args: readonly string[], name: string): boolean {
  const found = spawnSync(command, args).status === 0;
  if (!found && process.env.CI !== undefined) throw new Error(`${name} is needed on CI`);
  return found;
}
const PYTHON = '/usr/bin/python3';
const djangoAvailable = has(PYTHON, ['-c', 'import django, psycopg2'], 'Django');
const railsAvailable = has('ruby', ['-e', "require 'active_record'; require 'pg'"], "Rails' ActiveRecord");

const price = (value: unknown, currency = 'USD', type = 'digital_list_price') => ({ type, currency, value });
const variant = (prices: readonly unknown[], more: object = {}) => ({
  sku: 'S',
  type: 'single',
  duration: 'perpetual',
  distributable: true,
  prices,
  ...more,
});
const SOLD = {
  title: 'Tides',
  format: 'ePub',
  sales_rights: ['US'],
  exclude_sales_rights: [],
  variants: [variant([price(10)])],
  contributors: [{ name: 'Ann Lee', type: 'author' }, { name: 'Bo' }],
  identifiers: { e_isbn_13: '9780000000019' },
};
const YESTERDAY = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);
const TOMORROW = new Date(Date.now() + 86_400_000).toISOString().slice(0, 10);

/** Products, and their price if they may be sold in the US. */
const CASES: Readonly<Record<string, readonly [more: object, usd: number | null]>> = {
  'as it should be': [{}, 10],
  withdrawn: [{ distributable: false }, null],
  'with a variant that is not distributed': [{ variants: [variant([price(10)], { distributable: false })] }, null],
  'without rights': [{ sales_rights: [] }, null],
  'with rights that are not known': [{ sales_rights: null }, null],
  'with rights elsewhere': [{ sales_rights: ['GB', 'CA'] }, null],
  'with rights in the world': [{ sales_rights: ['WORLD'] }, 10],
  'with rights in the rest of the world': [{ sales_rights: ['GB', 'ROW'] }, 10],
  excluded: [{ sales_rights: ['WORLD'], exclude_sales_rights: ['CA', 'US'] }, null],
  'with others excluded': [{ sales_rights: ['WORLD'], exclude_sales_rights: ['CA'] }, 10],
  'granted and excluded': [{ exclude_sales_rights: ['US'] }, null],
  'with the rest excluded': [{ exclude_sales_rights: ['ROW'] }, 10],
  'in the rest that is excluded': [{ sales_rights: ['WORLD'], exclude_sales_rights: ['ROW'] }, null],
  'without a list of exclusions': [{ exclude_sales_rights: null }, 10],
  'on sale since yesterday': [{ on_sale_date: `${YESTERDAY}T00:00:00Z`, off_sale_date: TOMORROW }, 10],
  'on sale from tomorrow on': [{ on_sale_date: TOMORROW }, null],
  'off sale since yesterday': [{ off_sale_date: YESTERDAY }, null],
  'on paper': [{ format: 'pbk' }, null],
  'in another currency': [{ variants: [variant([price(10, 'EUR')])] }, null],
  'with another price': [{ variants: [variant([price(10, 'USD', 'print_list_price')])] }, null],
  'on request': [{ variants: [variant([price('on request')])] }, null],
  'for rent': [{ variants: [variant([price(4)], { type: 'rental', duration: '180' })] }, null],
  'with several prices': [{ variants: [variant([price(8), price('12.50'), price(9, 'EUR')])] }, 12.5],
};

const NAMES = Object.keys(CASES);
const EXPECTED = Object.entries(CASES).flatMap(([name, [, usd]]) => (usd === null ? [] : [[name, usd]]));
const FIRST = NAMES[0] ?? '';
const byName = (a: readonly unknown[], b: readonly unknown[]): number => String(a[0]).localeCompare(String(b[0]));

describe.skipIf(!postgresAvailable)('a shop', { tags: ['stores'] }, () => {
  const postgres = usePostgres();
  const url = (): string => `postgres://postgres@127.0.0.1:${postgres.port}/postgres?table=books`;

  beforeAll(async () => {
    const harness = openHarness();
    harness.change([
      ...Object.entries(CASES).map(([vbid, [more]]) => ({ vbid, body: JSON.stringify({ vbid, ...SOLD, ...more }) })),
      { vbid: 'removed', body: JSON.stringify({ vbid: 'removed', ...SOLD }) },
    ]);
    harness.change([{ vbid: 'removed', body: null }]);
    harness.start(configAt(url()));
    await harness.caughtUp();
    const [, sql = ''] = /"\n([^"]*)"/.exec(block('sh', page('sql.md').split('### What may be sold')[1] ?? '')) ?? [];
    rows = query<{ vbid: string; usd: number }>(harness.store.path, sql.replace('LIMIT 5', ''));
    await harness.close();
  });
  let rows: readonly { readonly vbid: string; readonly usd: number }[] = [];

  it('docs/sql.md finds what may be sold, and nothing else', () => {
    expect(rows.map(({ vbid, usd }) => [vbid, usd]).toSorted(byName)).toEqual(EXPECTED.toSorted(byName));
  });

  it('docs/stores/postgres.md finds the same', async () => {
    const found = await postgres.client.query<{ vbid: string; usd: string }>(block('sql', POSTGRES));
    expect(found.rows.map(({ vbid, usd }) => [vbid, Number(usd)]).toSorted(byName)).toEqual(EXPECTED.toSorted(byName));
  });

  it.skipIf(!djangoAvailable)(
    'Django reads and checks the models of examples/django_shop.py, and finds the same',
    { tags: ['stores', 'slow'] },
    async () => {
      const database = {
        SHOP_DATABASE: 'postgres',
        SHOP_HOST: '127.0.0.1',
        PGPORT: String(postgres.port),
        PGUSER: 'postgres',
      };
      const program = `
from django_shop import Book, Contributor, Identifier, Price, books, sellable
print([str(error) for model in (Book, Price, Contributor, Identifier) for error in model.check()])
book = Book.objects.get(vbid="${FIRST}")
print(book.title, book.sales_rights, [(one.name, one.type) for one in book.people.all()], [(one.pk > 0, one.sku, float(one.value)) for one in book.prices.all()])
print(Book.objects.filter(removed_at=None, sales_rights__contains=["WORLD"]).count(), Book.objects.filter(identifiers__value="9780000000019").count())
print(sorted([one.book_id, float(one.value)] for one in sellable("US", "USD")) == sorted(${JSON.stringify(EXPECTED)}), "<td>12.50 USD</td>" in books(None).content.decode())
print(Price.objects.filter(book__vbid="with several prices").count(), len(set(Price.objects.values_list("pk", flat=True))) == Price.objects.count())
`;
      const { stdout } = await execute(PYTHON, ['-B', '-c', program], {
        cwd: EXAMPLES,
        env: { ...process.env, ...database },
      });
      expect(stdout.split('\n')).toEqual([
        '[]',
        "Tides ['US'] [('Ann Lee', 'author'), ('Bo', None)] [(True, 'S', 10.0)]",
        `4 ${NAMES.length}`,
        'True True',
        '3 True',
        '',
      ]);
    },
  );

  it.skipIf(!railsAvailable)(
    'Rails reads the models of docs/stores/postgres.md',
    { tags: ['stores', 'slow'] },
    async () => {
      const program = `
require 'active_record'
ActiveRecord::Base.establish_connection(adapter: 'postgresql', host: '127.0.0.1', port: ${postgres.port}, username: 'postgres', database: 'postgres')
${block('rb', POSTGRES)}
book = Book.find('${FIRST}')
puts [book.title, book.sales_rights, book.people.map { |one| [one.name, one.type] }, book.prices.map { |one| [one.id > 0, one.sku, one.value.to_f, one.book.vbid] }].inspect
puts [Book.living.granted_in('WORLD').count, Book.joins(:identifiers).where(books_identifiers: { value: '9780000000019' }).count, BookPrice.find(BookPrice.last.id).currency].inspect
`;
      const { stdout } = await execute('ruby', ['-e', program]);
      expect(stdout).toBe(
        `["Tides", ["US"], [["Ann Lee", "author"], ["Bo", nil]], [[true, "S", 10.0, "${FIRST}"]]]\n[4, ${NAMES.length}, "EUR"]\n`,
      );
    },
  );
});
