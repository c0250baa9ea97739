import { lstatSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createGzip } from 'node:zlib';
import { renameDurably } from '@catchword/base/durable-names';
import { usageError } from '@catchword/base/errors';
import { printableLines } from '@catchword/base/printable';
import { configuredSource, oneLine } from '@catchword/catalog/event';
import { PART_NAMES, type Part } from '@catchword/catalog/fields';
import { parquetChunks } from '@catchword/catalog/parquet-chunks';
import { Command, Option } from 'commander';
import { plural, size } from '../../../report/text.ts';
import { approvedTo } from '../../../state/mirror-state.ts';
import { checkedTarget, partOf, withOwnFile } from '../../../store/file/back-up.ts';
import { backupFailed } from '../../../store/file/copy-mirror.ts';
import { copyInterrupted } from '../../../store/file/copy-subprocess.ts';
import { changesUpTo } from '../../../store/history/history.ts';
import { idAt } from '../../../store/history/log-position.ts';
import { type Moment, parseMoment, seqOf } from '../../../store/history/moment.ts';
import { eventSource } from '../../../store/rows/source-state.ts';
import type { Store } from '../../../store/store.ts';
import { type Absence, absentText, createAbsence, noneText } from '../../../view/absent-members.ts';
import { type GivenView, readerView, seenBy, type View } from '../../../view/view.ts';
import type { CommandContext } from '../shared/command-context.ts';
import { drained, type JsonOption, print } from '../shared/output-format.ts';
import { onMirror } from '../shared/with-mirror.ts';
import { csvChunks, jsonLines, tableOf } from './export-table.ts';

const FORMATS = ['ndjson', 'csv', 'parquet'] as const;
type Format = (typeof FORMATS)[number];

interface Options extends JsonOption, GivenView {
  readonly format?: Format;
  readonly at?: Moment;
  readonly approved?: boolean;
  readonly view?: Part;
  readonly excel?: boolean;
  readonly replace?: boolean;
}

const HELP = `
Writes every product as of one change, which it prints: continue from there with catchword changes --after SEQ.

  catchword export catalog.csv --where "format = 'ePub'" --fields vbid,title,publisher
  catchword export prices.parquet --view prices`;

type Chunks = Iterable<string | Uint8Array>;

/** Prints the chunks as fast as stdout takes them. @throws CatchwordError INTERRUPTED */
async function printChunks(context: CommandContext, chunks: Chunks): Promise<void> {
  const { stdout, signal } = context;
  for (const chunk of chunks) {
    if (!stdout.write(chunk)) await drained(context);
    // Lets a signal arrive, also while stdout takes everything at once.
    await nextTurn();
    if (signal.aborted) throw copyInterrupted().with({ message: 'interrupted; what was printed is not complete' });
  }
}

/**
 * Writes a file, which gets its name when it is complete and flushed. Only this user can read a new one; one that replaces
 * another has its mode.
 * @returns its size in bytes. @throws CatchwordError USAGE, BACKUP_FAILED, INTERRUPTED
 */
async function writeFile(
  { file, db, replaces }: { file: string; db: string; replaces: boolean },
  chunks: Chunks,
  isZipped: boolean,
  signal: AbortSignal,
) {
  const target = checkedTarget(file, db, replaces);
  const part = partOf(target);
  return await withOwnFile(target, async () => {
    try {
      // A process that was killed may have left it.
      rmSync(part, { force: true });
      // Opened before the first chunk, which may fail: else the stream could create the file after it was removed.
      const opened = await open(part, 'wx', 0o600);
      const replaced = lstatSync(target, { throwIfNoEntry: false });
      if (replaced !== undefined) await opened.chmod(replaced.mode & 0o777);
      const to = opened.createWriteStream({ flush: true });
      if (isZipped) await pipeline(chunks, createGzip(), to, { signal });
      else await pipeline(chunks, to, { signal });
      checkedTarget(file, db, replaces);
      await renameDurably(part, target);
      return to.bytesWritten;
    } catch (error) {
      if (signal.aborted) throw copyInterrupted();
      throw error instanceof Error && 'syscall' in error ? backupFailed(target, error) : error;
    } finally {
      rmSync(part, { force: true });
    }
  });
}

/** What a file name and the options say of the form of the data. @throws CatchwordError USAGE */
function formOf(file: string | undefined, { format: given, excel, replace }: Options) {
  const name = basename(file?.toLowerCase() ?? '');
  const [, end, zip] = /(?:\.(ndjson|jsonl|csv|parquet))?(\.gz)?$/.exec(name) ?? [];
  const format = given ?? FORMATS.find((one) => one === end) ?? 'ndjson';
  const isUnknown = given === undefined && end === undefined && /\.(?!gz$)[^.]*(\.gz)?$/.test(name);
  const wrong = [
    isUnknown && `the end of ${file} names no format: use .ndjson, .csv or .parquet, or --format`,
    replace === true && file === undefined && '--replace needs a file',
    excel === true && format !== 'csv' && `--excel is not for ${format}`,
    format === 'parquet' && (file === undefined || zip !== undefined) && 'parquet needs a file, without .gz',
  ].find((one) => one !== false);
  if (wrong !== undefined) throw usageError(wrong, 'See: npx catchword export --help.');
  return { format, isZipped: zip !== undefined };
}

/** What is exported, as of which change, and how many products so far. */
interface Export {
  readonly store: Store;
  readonly seq: number;
  readonly source: string;
  readonly view: View | null;
  readonly absence: Absence;
  count: number;
}

/** The products that match, as their JSON or what the view makes of it. */
function* textsOf(job: Export) {
  for (const changes of changesUpTo(job.store, job.seq)) {
    const texts = changes.flatMap((product) => {
      if (product.body !== null) job.absence.see(product.body);
      const text = seenBy(job.view, product);
      return text === null ? [] : [{ vbid: product.vbid, text }];
    });
    job.count += texts.length;
    if (texts.length > 0) yield texts;
  }
}

function* productLines(job: Export): Chunks {
  for (const texts of textsOf(job)) yield texts.map(({ text }) => `${oneLine(text)}\n`).join('');
}

function chunksOf(job: Export, format: Format, { view: part, excel = false }: Options): Chunks {
  if (format === 'ndjson' && part === undefined) return productLines(job);
  const { store, seq, source, view } = job;
  const { where = null, fields = null } = view ?? {};
  const table = tableOf(fields, part, format === 'parquet');
  const rows = (function* () {
    for (const texts of textsOf(job)) yield texts.flatMap(({ vbid, text }) => table.rows(vbid, text));
  })();
  if (format === 'ndjson') return jsonLines(rows, table);
  if (format === 'csv') return csvChunks(rows, table, excel);
  const { incarnation } = store;
  const about = { seq: String(seq), id: idAt(store, seq, view?.digest), incarnation, source, where, fields };
  return parquetChunks(rows, table, about, 'fast');
}

async function exportTo(context: CommandContext, given: string | undefined, options: Options): Promise<void> {
  const file = given === '-' ? undefined : given;
  const { at } = options;
  const { format, isZipped } = formOf(file, options);
  const view = readerView(options, '--');
  await onMirror(context, 'read', async (store, config) => {
    store.keepFewPages();
    const last = options.approved === true ? approvedTo(store) : store.changes.lastSeq();
    const seq = at === undefined ? last : seqOf(store, '--at', at);
    const source = eventSource(store.source, configuredSource(config.baseUrl));
    const job: Export = { store, seq, source, view, absence: createAbsence(view?.paths ?? []), count: 0 };
    const chunks = chunksOf(job, format, options);
    if (file === undefined) await printChunks(context, chunks);
    const target = { file: file ?? '', db: config.db, replaces: options.replace === true };
    const bytes = file === undefined ? 0 : await writeFile(target, chunks, isZipped, context.signal);
    const { count: failed = 0, last: failure = null } = view?.failures() ?? {};
    const warning = `${plural(failed, 'product')} left out, because an expression failed; the last: ${failure}`;
    const absent = job.absence.found();
    const isEmpty = view !== null && view.where !== null && job.count === 0 && job.absence.seen() > 0;
    const none = isEmpty ? [noneText(job.absence.seen())] : [];
    const warnings = [...(failed > 0 ? [warning] : []), ...absent.map(absentText), ...none];
    for (const line of warnings) context.stderr.write(`${printableLines(line)}\n`);
    const id = idAt(store, seq, view?.digest);
    const done = `${plural(job.count, 'product')} as of change ${seq} (${id})`;
    if (file === undefined) return void context.stderr.write(`${done}\n`);
    const json = {
      file: resolve(file),
      format,
      bytes,
      products: job.count,
      seq,
      id,
      source,
      left_out: failed,
      absent: absent.map(({ path }) => path),
    };
    print(context, options, { json, text: `${file}: ${done}, ${size(bytes)}` });
  });
}

export function exportCommand(context: CommandContext): Command {
  return new Command('export')
    .argument('[file]', 'the new file; omit it, or write -, to print. NAME.gz is compressed')
    .option('--replace', 'replace the file if it exists, once the new one is complete')
    .addOption(new Option('--format <format>', 'default: from the name of the file, else ndjson').choices(FORMATS))
    .option('--at <when>', 'the products as of this change, or of this time (default: now)', (text) =>
      parseMoment('--at', text, context.clock.now()),
    )
    .addOption(
      new Option('--approved', 'the products as of before an unusual run that is still a problem').conflicts('at'),
    )
    .option('--where <expression>', 'only products for which this is true: SQL over the columns of the view catalog')
    .option('--fields <list>', 'only these members, or an SQL expression that yields a JSON object')
    .addOption(
      new Option('--view <name>', 'a row for each of these, as in the SQL view of this name, instead of each product')
        .choices(PART_NAMES)
        .conflicts('fields'),
    )
    .addOption(
      new Option('--changes <range>').hideHelp().argParser(() => {
        throw usageError('export --changes is now a command', 'Use: npx catchword changes --after FROM --to TO.');
      }),
    )
    .option('--excel', 'CSV for Excel: byte order mark, semicolons, no formulas')
    .option('--json', 'print one JSON document about the file')
    .addHelpText('after', HELP)
    .action((file: string | undefined, options: Options) => exportTo(context, file, options));
}
