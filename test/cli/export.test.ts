import { execFile } from 'node:child_process';
import { chmodSync, linkSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import * as zlib from 'node:zlib';
import { eventId } from '@catchword/catalog/event';
import { COLUMNS, PART_NAMES } from '@catchword/catalog/fields';
import { query } from '@catchword/testing/sqlite';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { DuckDBInstance } from '@duckdb/node-api';
import { parse } from 'csv-parse/sync';
import { expect, it, onTestFinished } from 'vitest';
import { writeUnder } from '../../src/store/schema/lease.ts';
import { type TestMirror, temporaryMirror } from '../relay/feeding.ts';
import { CLI, run, runProcess, start, stopWhileWriting } from '../support/cli.ts';
import { type Printed, runHere } from '../support/in-process.ts';
import { catalogOf } from '../support/mirror.ts';
import { filled } from '../support/place.ts';
import { expectFailure } from './failure.ts';

const python = promisify(execFile);

/** Products that a writer of files may stumble over. */
const HOSTILE: readonly (readonly [vbid: string, members: string])[] = [
  ['=1+1', '"title":"=cmd|\' /C calc\'!A0","subtitle":"a;b,c"'],
  ['k'.repeat(255), '"title":"two\\nlines\\r\\nand \\"quotes\\"","kind":"book"'],
  ['emoji', '"title":"\u{1F4DA} Ünï — “x”","edition":12345678901234567890,"price":10.50,"distributable":false'],
  ['empty', '"title":"","subtitle":null,"sales_rights":["DE","AT"],"metadata":{"page_count":7,"description":"+49"}'],
  ['spaced', '"title":"in\ttabs" ,\n "publisher":{"name":"@ p"}'],
  ['minus', '"title":"-1","contributors":["A","B"]'],
];

const bodyOf = ([vbid, members]: (typeof HOSTILE)[number]): string => `{"vbid":${JSON.stringify(vbid)},${members}}`;

function hostileMirror(): TestMirror {
  const mirror = temporaryMirror();
  mirror.change(HOSTILE.map((one) => ({ vbid: one[0], body: bodyOf(one).replace('\t', '\\t') })));
  return mirror;
}

/** Prints the rows of a CSV file as JSON. Arguments: the file, the delimiter, the encoding. */
const READ_CSV =
  'import csv, json, sys; f = open(sys.argv[1], newline="", encoding=sys.argv[3]); print(json.dumps(list(csv.reader(f, delimiter=sys.argv[2]))))';

/** Runs `catchword export` in a directory of its own. */
function exporter({ store }: TestMirror) {
  const directory = temporaryDirectory();
  const command = (...args: string[]): Promise<Printed> => runHere(args, { CATCHWORD_DB: store.path }, directory);
  return {
    directory,
    command,
    text: (file: string) => readFileSync(join(directory, file), 'utf8'),
    save: async (...args: string[]): Promise<string> => {
      const { code, stdout, stderr } = await command('export', ...args, '--json');
      expect([code, stderr]).toEqual([0, '']);
      return stdout;
    },
  };
}

/** What a query of DuckDB returns. */
async function duck(sql: string): Promise<Record<string, unknown>[]> {
  const instance = await DuckDBInstance.create();
  const connection = await instance.connect();
  onTestFinished(() => {
    connection.closeSync();
    instance.closeSync();
  });
  return (await connection.runAndReadAll(sql)).getRowObjectsJson();
}

const NAMES = ['vbid', ...COLUMNS.map(({ column }) => column)];

/** The rows of the view `catalog`, in the order of an export. */
function viewRows(db: string): Record<string, string | number | null>[] {
  return query(db, `SELECT ${NAMES.join(', ')} FROM catalog ORDER BY changed_seq`);
}

it('export writes NDJSON with the bytes of each product, a line each, and tells the position', async () => {
  const mirror = hostileMirror();
  const { command, save, text } = exporter(mirror);
  const printed = JSON.parse(await save('a.ndjson')) as object;
  const [last] = mirror.events(HOSTILE.length - 1);
  const id = last && eventId(mirror.store.incarnation, last);
  expect(printed).toMatchObject({ format: 'ndjson', products: HOSTILE.length, seq: HOSTILE.length, id, left_out: 0 });
  const lines = HOSTILE.map((one) => `${bodyOf(one).replace('\t', '\\t').replace('\n', ' ')}\n`);
  expect(text('a.ndjson')).toBe(lines.join(''));
  const { stdout, stderr } = await command('export');
  expect(stdout).toBe(lines.join(''));
  expect(stderr).toBe(`6 products as of change 6 (${id})\n`);
  expect(JSON.parse(lines[2] ?? '')).toMatchObject({ vbid: 'emoji' });
  expect(stdout).toContain('12345678901234567890,"price":10.50,');
});

it('export compresses a file whose name ends with .gz', async () => {
  const { save, text, directory } = exporter(hostileMirror());
  for (const name of ['a.ndjson', 'a.csv']) {
    await save(name);
    await save(`${name}.gz`);
    expect(zlib.gunzipSync(readFileSync(join(directory, `${name}.gz`))).toString()).toBe(text(name));
  }
  await save('a.csv.bak', '--format', 'csv');
  expect(text('a.csv.bak')).toBe(text('a.csv'));
});

it('export reads the format from the end of a name in capitals, too', async () => {
  const { save, directory, text } = exporter(hostileMirror());
  expect(JSON.parse(await save('A.CSV', '--fields', 'vbid'))).toMatchObject({ format: 'csv' });
  expect(text('A.CSV')).toMatch(/^vbid\r\n/);
  await save('B.NDJSON.GZ');
  expect(zlib.gunzipSync(readFileSync(join(directory, 'B.NDJSON.GZ'))).toString()).toContain('"vbid"');
});

it('export writes CSV that csv-parse and Python read as the view catalog', async () => {
  const mirror = hostileMirror();
  const { save, directory } = exporter(mirror);
  await save('a.csv');
  const path = join(directory, 'a.csv');
  const expected = viewRows(mirror.store.path).map((row) => NAMES.map((name) => String(row[name] ?? '')));
  expect(expected[2]?.[NAMES.indexOf('distributable')]).toBe('0');
  const [head, ...rows] = parse(readFileSync(path)) as string[][];
  expect(head).toEqual(NAMES);
  expect(rows).toEqual(expected);
  const { stdout } = await python('python3', ['-c', READ_CSV, path, ',', 'utf-8']);
  expect(JSON.parse(stdout)).toEqual([NAMES, ...expected]);
});

/** Titles that some reader may take for the end of a row or of a field, or for nothing. */
const TITLES = [
  'a\nb',
  'a\rb',
  '\n',
  '\r\n',
  '\n=1+1',
  'a\n"b',
  '"',
  '\\"',
  ' a ',
  "'",
  'a\u2028b',
  '',
  '\ttab',
  '#',
  'a\u0085b',
];

it('export writes CSV whose rows and texts Python, sqlite3 and DuckDB read alike, whatever a text contains', {
  tags: ['slow'],
}, async () => {
  const mirror = temporaryMirror();
  mirror.change(TITLES.map((title, at) => ({ vbid: `P${at}`, body: JSON.stringify({ vbid: `P${at}`, title }) })));
  const { save, directory } = exporter(mirror);
  const expected = TITLES.map((title, at) => [`P${at}`, title]);
  // The name of a column is a text, too.
  const readings = { title: 'vbid,title', 'a\n"b': `json_object('a\n"b', title)` };
  for (const [name, fields] of Object.entries(readings)) {
    const path = join(directory, `${Object.keys(readings).indexOf(name)}.csv`);
    await save(path, '--fields', fields);
    const { stdout } = await python('python3', ['-c', READ_CSV, path, ',', 'utf-8']);
    expect(JSON.parse(stdout)).toEqual([['vbid', name], ...expected]);
    const inSqlite = python('sqlite3', [':memory:']);
    inSqlite.child.stdin?.end(['.mode csv', `.import "${path}" read`, '.mode json', 'SELECT * FROM read'].join('\n'));
    const found = JSON.parse((await inSqlite).stdout) as Record<string, string>[];
    expect(found).toEqual(expected.map(([vbid, title]) => ({ vbid, [name]: title })));
  }
  // DuckDB finds the form of the file itself, as it does for a person who gives it only the name.
  const options = String.raw`header = true, all_varchar = true, nullstr = '\N'`;
  const inDuck = await duck(`SELECT * FROM read_csv('${join(directory, '0.csv')}', ${options})`);
  expect(inDuck.map((row) => Object.values(row))).toEqual(expected);
  await save('excel.csv', '--excel', '--fields', 'vbid,title');
  const { stdout } = await python('python3', ['-c', READ_CSV, join(directory, 'excel.csv'), ';', 'utf-8-sig']);
  const [, ...excel] = JSON.parse(stdout) as string[][];
  expect(excel).toEqual(TITLES.map((title, at) => [`P${at}`, title.replace(/^[\t\r\n]/, "'$&")]));
  expect(excel.flat().filter((text) => /^[=+\-@\t\r\n]/.test(text))).toEqual([]);
});

it('export --excel writes a byte order mark and semicolons, and no formula', async () => {
  const { save, text } = exporter(hostileMirror());
  await save('a.csv', '--excel', '--fields', 'title,metadata.description');
  expect(text('a.csv').startsWith('\ufeffvbid;title;metadata.description\r\n')).toBe(true);
  const rows = parse(text('a.csv'), { bom: true, delimiter: ';', columns: true }) as Record<string, string>[];
  expect(rows).toMatchObject([
    { vbid: "'=1+1", title: "'=cmd|' /C calc'!A0" },
    { title: 'two\nlines\r\nand "quotes"' },
    { title: '\u{1F4DA} Ünï — “x”' },
    { title: '', 'metadata.description': "'+49" },
    { title: 'in\ttabs' },
    { title: "'-1" },
  ]);
});

it('export --fields writes the members of a list or of an expression as columns, with the digits of numbers', async () => {
  const { save, text, command } = exporter(hostileMirror());
  await save(
    'a.csv',
    '--fields',
    'edition, price,metadata,sales_rights,metadata.page_count,subtitle,title',
    '--where',
    "vbid IN ('emoji', 'empty')",
  );
  expect(text('a.csv').split('\r\n')).toEqual([
    'vbid,edition,price,metadata,sales_rights,metadata.page_count,subtitle,title',
    'emoji,12345678901234567890,10.50,,,,,\u{1F4DA} Ünï — “x”',
    'empty,,,"{""page_count"":7,""description"":""+49""}","[""DE"",""AT""]",7,,""',
    '',
  ]);
  await save('b.csv', '--fields', "json_object('name', title, 'eur', body -> '$.price')", '--where', "vbid = 'emoji'");
  expect(text('b.csv')).toBe('vbid,name,eur\r\nemoji,\u{1F4DA} Ünï — “x”,10.50\r\n');
  const none = await command('export', 'none.csv', '--fields', "json_object('name', title)", '--where', '0');
  expect(none).toMatchObject({ code: 0, stderr: expect.stringMatching(/^the filter matches none of 6 products: /) });
  expect(text('none.csv')).toBe('vbid\r\n');
  const other = "CASE vbid WHEN 'emoji' THEN json_object('b', 1) ELSE json_object('a', 1) END";
  expectFailure(await command('export', 'c.csv', '--fields', other), 2, 'yields the member "b" for emoji');
});

it('export --where leaves out a product that an expression fails for, and says so', async () => {
  const { command, text } = exporter(hostileMirror());
  const fields = "CASE vbid WHEN 'emoji' THEN title ELSE json_object('title', title) END";
  const ended = await command('export', 'a.ndjson', '--fields', fields, '--json');
  expect(ended.stderr).toMatch(/^1 product left out, because an expression failed; the last: emoji: /);
  expect(JSON.parse(ended.stdout)).toMatchObject({ products: 5, left_out: 1 });
  expect(text('a.ndjson').split('\n')).toHaveLength(6);
  expectFailure(await command('export', '--where', 'nothing = 1'), 2, '--where');
});

it('export writes Parquet that DuckDB reads as the view catalog, with types, nulls and the position', async () => {
  const mirror = hostileMirror();
  const { command, save, directory } = exporter(mirror);
  const { seq, id } = JSON.parse(await save('a.parquet', '--where', "vbid <> 'minus'")) as Record<string, unknown>;
  const file = `'${join(directory, 'a.parquet')}'`;
  const rows = await duck(`SELECT * FROM ${file}`);
  const expected = viewRows(mirror.store.path).filter(({ vbid }) => vbid !== 'minus');
  const withoutBody = await duck(`SELECT * EXCLUDE (body) FROM ${file}`);
  expect(withoutBody).toEqual(expected.map((row) => ({ ...row, distributable: row.distributable === 1 })));
  expect(rows.map(({ body }) => body)).toEqual(
    HOSTILE.filter(([vbid]) => vbid !== 'minus').map((one) => bodyOf(one).replace('\t', '\\t')),
  );
  const types = await duck(`DESCRIBE SELECT vbid, title, distributable, sales_rights, body FROM ${file}`);
  expect(types.map(({ column_type: type }) => type)).toEqual(['VARCHAR', 'VARCHAR', 'BOOLEAN', 'JSON', 'JSON']);
  const schema = await duck(`SELECT name FROM parquet_schema(${file}) WHERE repetition_type = 'REQUIRED'`);
  expect(schema.map(({ name }) => name)).toEqual(['vbid', 'distributable', 'body']);
  const metadata = await duck(`SELECT decode(key) AS key, decode(value) AS value FROM parquet_kv_metadata(${file})`);
  expect(Object.fromEntries(metadata.map(({ key, value }) => [key, value]))).toEqual({
    'catchword.seq': String(seq),
    'catchword.id': id,
    'catchword.incarnation': mirror.store.incarnation,
    'catchword.source': '/v4/products',
    'catchword.where': "vbid <> 'minus'",
    'catchword.fields': '',
  });
  await save('b.parquet', '--fields', 'title');
  expect(await duck(`SELECT * FROM '${join(directory, 'b.parquet')}' WHERE title = '-1'`)).toEqual([
    { vbid: 'minus', title: '-1' },
  ]);
  expect((await command('export', 'none.parquet', '--where', '0')).code).toBe(0);
  expect(await duck(`SELECT count(*)::INT AS n FROM '${join(directory, 'none.parquet')}'`)).toEqual([{ n: 0 }]);
});

/** Two books: one with two prices, two contributors and two identifiers, and one with nothing. */
function partedMirror(): TestMirror {
  const mirror = temporaryMirror();
  const price = (value: unknown) => ({ type: 'list', currency: 'EUR', value });
  const full = {
    vbid: 'A',
    variants: [{ sku: 'S', type: 'single', duration: 'perpetual', prices: [price(10.5), price('n/a')] }],
    contributors: ['Ann', { type: 'editor' }, { name: 'Bo', type: 'editor' }],
    identifiers: { e_isbn_13: '9780000000019', other: ['4711', null] },
  };
  mirror.change(
    [full, { vbid: 'B' }, { ...full, vbid: 'C' }].map((one) => ({ vbid: one.vbid, body: JSON.stringify(one) })),
  );
  return mirror;
}

it.each(PART_NAMES)('export --view %s has the rows and types of the SQL view, in each format', async (part) => {
  const mirror = partedMirror();
  const { save, text, directory } = exporter(mirror);
  const options = ['--view', part, '--where', "vbid <> 'C'"];
  const rows = query<Record<string, string | number | null>>(
    mirror.store.path,
    `SELECT * FROM ${part} WHERE vbid <> 'C'`,
  );
  expect(rows).toHaveLength(2);
  const typed = rows.map((row) =>
    Object.fromEntries(Object.entries(row).map(([name, value]) => [name, /distrib/.test(name) ? value === 1 : value])),
  );
  await save('a.ndjson', ...options);
  expect(
    text('a.ndjson')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown),
  ).toEqual(typed);
  await save('a.parquet', ...options);
  expect(await duck(`SELECT * FROM '${join(directory, 'a.parquet')}'`)).toEqual(typed);
  await save('a.csv', ...options);
  const csv = parse(text('a.csv'), { columns: true }) as unknown;
  expect(csv).toEqual(rows.map((row) => Object.fromEntries(Object.entries(row).map(([k, v]) => [k, String(v ?? '')]))));
});

it('export writes prices as numbers, and positions as whole numbers, and refuses --fields with --view', async () => {
  const { save, command, directory } = exporter(partedMirror());
  const types = async (part: string, column: string) => {
    await save(`${part}.parquet`, '--view', part);
    const [found] = await duck(`DESCRIBE SELECT ${column} FROM '${join(directory, `${part}.parquet`)}'`);
    return found?.column_type;
  };
  expect(await types('prices', 'value')).toBe('DOUBLE');
  expect(await types('contributors', 'position')).toBe('INTEGER');
  expectFailure(
    await command('export', '--view', 'prices', '--fields', 'title'),
    2,
    "cannot be used with option '--fields",
  );
  expectFailure(
    await command('export', '--view', 'catalog'),
    2,
    'Allowed choices are prices, contributors, identifiers',
  );
});

it('export writes Parquet that DuckDB reads whole, whatever half of a surrogate pair a product has', async () => {
  const mirror = temporaryMirror();
  const halves = {
    high: '"a\\ud800"',
    low: '"\\udc00b"',
    both: '"\\udc00\\uD83D"',
    pair: '"\\ud83d\\uDE00"',
    escaped: '"\\\\ud800"',
    mixed: '"\\ud83d\\ud83d\\ude00"',
  };
  mirror.change(
    Object.entries(halves).map(([vbid, title]) => ({
      vbid,
      body: `{"vbid":"${vbid}","title":${title},"sales_rights":[${title}],"n":1.50}`,
    })),
  );
  const { save, directory } = exporter(mirror);
  await save('a.parquet');
  const found = await duck(
    `SELECT *, body->>'title' AS inner, sales_rights->>0 AS first FROM '${join(directory, 'a.parquet')}'`,
  );
  const replaced = ['a\ufffd', '\ufffdb', '\ufffd\ufffd', '\u{1F600}', '\\ud800', '\ufffd\u{1F600}'];
  expect(found.map(({ inner }) => inner)).toEqual(replaced);
  expect(found.map(({ first }) => first)).toEqual(replaced);
  expect(found.at(3)?.body).toBe(`{"vbid":"pair","title":${halves.pair},"sales_rights":[${halves.pair}],"n":1.50}`);
});

it('export writes Parquet with Zstandard if this Node.js has it, or else with Snappy', async () => {
  const { save, directory } = exporter(hostileMirror());
  await save('a.parquet');
  const codecs = await duck(`SELECT DISTINCT compression FROM parquet_metadata('${join(directory, 'a.parquet')}')`);
  expect(codecs).toEqual([{ compression: 'zstdCompressSync' in zlib ? 'ZSTD' : 'SNAPPY' }]);
});

it('export writes Parquet in row groups that DuckDB reads together', { tags: ['slow'] }, async () => {
  const mirror = temporaryMirror();
  const long = 'x'.repeat(1_000_000);
  for (let number = 0; number < 40; number++) {
    const vbid = `P${number}`;
    mirror.change([{ vbid, body: JSON.stringify({ vbid, title: vbid, long }) }]);
  }
  const { save, directory } = exporter(mirror);
  await save('a.parquet');
  const file = `'${join(directory, 'a.parquet')}'`;
  const [found] = await duck(
    `SELECT count(DISTINCT row_group_id)::INT AS groups, (SELECT count(DISTINCT title)::INT FROM ${file}) AS titles,
     (SELECT sum(length(body))::INT FROM ${file}) AS chars FROM parquet_metadata(${file})`,
  );
  expect(found).toMatchObject({ titles: 40, groups: 2 });
  expect(Number(found?.chars)).toBeGreaterThan(40_000_000);
});

it('export at a position and the changes after it are the mirror as it is now', async () => {
  const mirror = hostileMirror();
  const { command, text, save } = exporter(mirror);
  const change = (vbid: string, title: string | null): void =>
    mirror.change([{ vbid, body: title === null ? null : JSON.stringify({ vbid, title }) }]);
  change('emoji', 'changed');
  change('minus', null);
  await save('at.ndjson');
  change('minus', 'again');
  change('new', 'new');
  change('empty', null);
  await save('then.ndjson', '--at', '8');
  expect(text('then.ndjson')).toBe(text('at.ndjson'));
  const all = await command('changes', '--after', '8');
  expect((await command('changes', '--after', '8', '--to', '9')).stdout).toBe(`${all.stdout.split('\n')[0]}\n`);
  expect((await command('changes', '--after', '8', '--to', '9', '--follow')).stdout.split('\n')).toHaveLength(2);
  const store = new Map<string, unknown>();
  for (const line of text('at.ndjson').trimEnd().split('\n')) {
    const product = JSON.parse(line) as { vbid: string };
    store.set(product.vbid, product);
  }
  for (const line of all.stdout.trimEnd().split('\n')) {
    const { subject, data } = JSON.parse(line) as { subject: string; data: { product: unknown } };
    if (data.product === null) store.delete(subject);
    else store.set(subject, data.product);
  }
  const now = [...catalogOf(mirror.store.path)].map(([vbid, body]) => [vbid, JSON.parse(body) as unknown] as const);
  expect(store).toEqual(new Map(now));
});

it('export refuses what it cannot do, and writes nothing', async () => {
  const mirror = hostileMirror();
  const { command, directory } = exporter(mirror);
  mirror.change([{ vbid: 'minus', body: null }]);
  writeUnder(mirror.store.keeperLease, Date.now(), ({ changes }) => changes.prune(7));
  writeFileSync(join(directory, 'mine.csv'), 'mine');
  linkSync(mirror.store.path, join(dirname(mirror.store.path), 'hard.db'));
  symlinkSync(join(directory, 'nowhere'), join(directory, 'dangling.csv'));
  const wrong: readonly (readonly [string, RegExp])[] = [
    ['mine.csv', /mine\.csv exists \[USAGE\]\nhint .*--replace/],
    ['dangling.csv', /dangling\.csv exists/],
    ['none/a.csv', /none is not a directory/],
    [`${mirror.store.path} --format csv`, /belongs to the mirror itself/],
    [`${join(dirname(mirror.store.path), 'hard.db')} --format csv`, /belongs to the mirror itself/],
    ['--format parquet', /parquet needs a file/],
    ['a.parquet.gz', /parquet needs a file, without \.gz/],
    ['a.ndjson --excel', /--excel is not for ndjson/],
    ['a.csv --at 8', /--at: 8 is beyond the newest change, which is 7/],
    ['a.csv --at 6', /no longer holds the mirror as of change 6 \[NOT_FOUND\]\nhint {2}Changes up to 7 were pruned/],
    ['--changes 3..4', /is now a command \[USAGE\]\nhint .*catchword changes --after FROM --to TO/],
    ['a.ndjson --where ', /--where is empty \[USAGE\]/],
    ['a.ndjson --format xml', /Allowed choices are ndjson, csv, parquet/],
  ];
  for (const [args, message] of wrong) {
    const { code, stdout, stderr } = await command('export', ...args.split(' '));
    expect([args, code, stdout]).toEqual([args, /NOT_FOUND/.test(message.source) ? 1 : 2, '']);
    expect(stderr).toMatch(message);
  }
  expect(readdirSync(directory).sort()).toEqual(['dangling.csv', 'mine.csv']);
  expect((await command('export', '--at', '0')).stdout).toBe('');
});

it('export leaves no file behind when it is killed, interrupted, or the disk is full', { tags: ['slow'] }, async () => {
  const here = await filled({ items: 20_000, details: true });
  const { settings, directory } = here;
  const names = (): string[] => readdirSync(directory).filter((name) => !name.startsWith('catalog.db'));
  const killed = await stopWhileWriting(['export', 'a.parquet'], 'a.parquet', 'SIGKILL', here);
  expect(killed).toMatchObject({ signal: 'SIGKILL' });
  expect(names()).not.toContain('a.parquet');
  const interrupted = await stopWhileWriting(['export', 'b.parquet'], 'b.parquet', 'SIGINT', here);
  expect(interrupted).toMatchObject({
    code: 130,
    stdout: '',
    stderr: expect.stringContaining('nothing was written'),
  });
  // A shell's limit on a file's size makes a write fail, like one on a full disk.
  const limited = 'trap "" XFSZ; ulimit -f 1000; exec "$0" "$@"';
  for (const file of ['a.parquet', 'a.csv', 'a.ndjson', 'a.ndjson.gz']) {
    const full = await runProcess(['sh', '-c', limited, process.execPath, CLI, 'export', file], settings, directory);
    expect(full).toMatchObject({ code: 1, stdout: '' });
    expect(full.stderr).toMatch(/cannot be written: EFBIG.* \[BACKUP_FAILED\]\nhint {2}Free disk space/);
  }
  expect(names().filter((name) => !name.endsWith('.lock'))).toEqual([]);
  expect((await run(['export', 'a.parquet'], settings, directory)).code).toBe(0);
  expect(statSync(join(directory, 'a.parquet')).mode & 0o777).toBe(0o600);
});

it('export ends without an error when the reader of stdout goes away, and says that it was interrupted', {
  tags: ['slow'],
}, async () => {
  const { settings, directory } = await filled({ items: 5_000, details: true });
  const piped = `"$0" "$@" | head -n 1 | wc -l; echo "\${PIPESTATUS[0]}"`;
  const ended = await runProcess(['bash', '-c', piped, process.execPath, CLI, 'export'], settings, directory);
  expect([ended.stdout, ended.stderr]).toEqual(['1\n0\n', '']);
  const interrupted = start(['export'], settings, directory);
  // It waits for its reader.
  interrupted.child.stdout?.pause();
  await expect.poll(() => interrupted.child.stdout?.readableLength).toBeGreaterThan(0);
  interrupted.child.kill('SIGINT');
  interrupted.child.stdout?.resume();
  expect(await interrupted.ended).toMatchObject({ code: 130, stderr: expect.stringContaining('is not complete') });
});

it('an export with --replace replaces a file once the new one is complete, and keeps its mode', async () => {
  const mirror = hostileMirror();
  const { directory, command, text } = exporter(mirror);
  expect((await command('export', 'nightly.csv')).code).toBe(0);
  const before = text('nightly.csv');
  chmodSync(join(directory, 'nightly.csv'), 0o640);
  const refused = await command('export', 'nightly.csv');
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('To replace it: add --replace')]);
  expect(text('nightly.csv')).toBe(before);
  mirror.change([{ vbid: 'new', body: '{"vbid":"new"}' }]);
  expect((await command('export', 'nightly.csv', '--replace')).code).toBe(0);
  expect(text('nightly.csv')).not.toBe(before);
  expect(statSync(join(directory, 'nightly.csv')).mode & 0o777).toBe(0o640);
  symlinkSync('nightly.csv', join(directory, 'link.csv'));
  expect((await command('export', 'link.csv', '--replace')).stderr).toContain('is not a file, so it is not replaced');
});

it.each(['catalog.xlsx', 'catalog.tsv', 'catalog.json', 'catalog.csv.zip', 'catalog.xlsx.gz'])(
  'an export to %s is refused, because its end names no format',
  async (file) => {
    const { command, directory } = exporter(hostileMirror());
    const { code, stderr } = await command('export', file);
    expect([code, stderr]).toEqual([2, expect.stringContaining(`the end of ${file} names no format`)]);
    expect(readdirSync(directory)).toEqual([]);
  },
);

it('an export to - is printed, and names members that no product has', async () => {
  const { command, directory } = exporter(hostileMirror());
  const { stdout, stderr, code } = await command('export', '-', '--fields', 'vbid,titel');
  expect(code).toBe(0);
  expect(stdout.trim().split('\n')).toHaveLength(HOSTILE.length);
  expect(stderr).toContain('no product has titel: did you mean title?\n');
  expect(readdirSync(directory)).toEqual([]);
});
