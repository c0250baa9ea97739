import { accessSync, constants, existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { messageOf, systemCodeOf } from '@catchword/base/errors';
import { proxyFor } from '@catchword/base/proxy';
import { sourceId, sourceIdentity } from '@catchword/catalog/source-identity';
import { type Config, requireSource, type SinkSetting, type SourceConfig } from '@catchword/settings/config';
import { unknownSettings } from '@catchword/settings/unknown-settings';
import type { Mark } from '@catchword/sink-kit/sink';
import { withTimeout } from '@catchword/sink-kit/with-timeout';
import { Command } from 'commander';
import { channelConfig } from '../../../operate/incidents/channel-config.ts';
import { requireOwnMark } from '../../../relay/resume-position.ts';
import { type SinkConfig, sinkConfig, sinkConfigs } from '../../../relay/sink-config.ts';
import { type Colours, plural, size } from '../../../report/text.ts';
import { completeText } from '../../../shown/status-text.ts';
import { stateOf } from '../../../state/mirror-state.ts';
import { lookAt } from '../../../store/file/mirror-path.ts';
import { damaged } from '../../../store/file/open-mirror-file.ts';
import type { SinkRow } from '../../../store/rows/sink-rows.ts';
import type { Store } from '../../../store/store.ts';
import { requireSameSource } from '../../../sync/source-binding.ts';
import { absentText, createAbsence, noneText } from '../../../view/absent-members.ts';
import { type View, viewOrNull, viewText } from '../../../view/view.ts';
import { viewNotes } from '../../../view/view-notes.ts';
import { openMirrorIfSound, withMirror } from '../../roles/open-mirror.ts';
import { checkedSettings, settingProblems } from '../shared/checked-settings.ts';
import type { CommandContext } from '../shared/command-context.ts';
import { colours, type JsonOption, print } from '../shared/output-format.ts';
import { settingsNotInUse } from '../shared/with-mirror.ts';
import { checkDisk } from './disk-check.ts';
import { examine, type Finding, failed, note, ok, type Result } from './finding.ts';
import { examineSource } from './source-check.ts';

const SINK_TIMEOUT_MS = 10_000;
/** Products in which members are looked for. */
const LOOKED_AT = 1_000;

function examineSettings({ environment }: CommandContext): Finding[] {
  const wrong = settingProblems(environment, 'source', true).map(({ message, hint }) => failed(message, hint));
  const unknown = unknownSettings(environment).map((text): Result => ({ level: 'note', text }));
  const results = [...wrong, ...unknown];
  return (results.length === 0 ? [ok('complete')] : results).map((result) => ({ check: 'settings', ...result }));
}

function nearestDirectory(path: string): string {
  const directory = dirname(path);
  return existsSync(directory) || directory === path ? directory : nearestDirectory(directory);
}

/** Why this user cannot write a path; null if they can. */
function writeProblem(path: string, mode = constants.W_OK): string | null {
  try {
    accessSync(path, mode);
    return null;
  } catch (error) {
    return systemCodeOf(error) ?? messageOf(error);
  }
}

async function checkMirror(config: Config, nowMs: number, withIndexes: boolean): Promise<Result> {
  const { db } = config;
  const exists = lookAt(db) !== undefined;
  const directory = nearestDirectory(resolve(db));
  const problem = writeProblem(`${directory}/`, constants.W_OK | constants.X_OK);
  // SQLite creates files next to the mirror. A user who can only read the mirror does without them.
  if (problem !== null && (!exists || writeProblem(db) === null)) {
    const hint =
      'Set CATCHWORD_DB to a path that this user can write, or give this user write permission; for EROFS, mount it for writing.';
    return failed(`${db}: ${directory} cannot be written (${problem})`, hint);
  }
  if (!exists) return note(`${db} does not exist yet`, 'Create it: npx catchword sync.');
  return await withMirror(config, true, (store) => {
    const [damage] = store.checkFile(withIndexes);
    if (damage !== undefined) throw damaged(db, damage);
    const complete = completeText(stateOf(store, nowMs, config));
    return ok(`${plural(store.products.living(), 'product')}, ${size(store.sizeBytes())}, sound, complete ${complete}`);
  });
}

function examineProxies(config: Config, sinks: readonly SinkSetting[]): Finding[] {
  const { httpsProxy, httpProxy, baseUrl, heartbeatUrl, channels } = config;
  if (httpsProxy === undefined && httpProxy === undefined) return [];
  const targets = [
    ['the service', baseUrl] as const,
    ['heartbeats', heartbeatUrl] as const,
    ...sinks.map(({ name, url }) => [`sink ${name}`, url] as const),
    ...channels.map(({ name, url }) => [`channel ${name}`, url] as const),
  ];
  return targets.flatMap(([what, given = '']) => {
    const url = given.replace(/^\w+\+(?=https?:)/, '');
    if (!/^https?:/.test(url)) return [];
    const proxy = proxyFor(new URL(url), config);
    return { check: 'proxy', ...ok(`${what}: ${proxy === null ? 'none' : `${proxy.name} (${proxy.setting})`}`) };
  });
}

async function checkRedis({ redisUrl, baseUrl, apiKey, ...config }: Config): Promise<Result> {
  if (redisUrl === undefined) return ok('not used (REDIS_URL is not set)');
  const { checkRedis: check } = await import('@catchword/queue-redis/check-redis');
  const { primary, silent } = await check(redisUrl);
  const { PREFIX, queueNames } = await import('@catchword/queue-redis/jobs');
  const source = baseUrl === undefined || apiKey === undefined ? '' : sourceId({ ...config, baseUrl, apiKey });
  const { fetch, runs, apply } = queueNames({ source });
  const names = source === '' ? '' : `; queues ${fetch}, ${runs} and ${apply('MIRROR')}, prefix ${PREFIX}`;
  const place = primary === null ? '' : ` at ${primary}, as the sentinels say`;
  const text = `reachable${place}, takes jobs, never evicts${names}`;
  return silent.length === 0 ? ok(text) : note(text, `Correct this, or a failover may fail: ${silent.join('; ')}.`);
}

/**
 * @param mirror null if there is none yet; undefined if it cannot be opened: then it is unknown who has fed the store
 * @param configs all sinks of the settings
 */
async function checkSink(
  setting: SinkSetting,
  mirror: Store | null | undefined,
  configs: readonly SinkConfig[],
): Promise<Result> {
  const config = sinkConfig(setting);
  const about = `${config.name} (${config.kind}, ${config.address})`;
  const sink = await config.make();
  try {
    // The mirror notes new settings when a relay starts. A setting without an address leaves a sink its store.
    const isFed = (row: SinkRow): boolean =>
      configs.some(({ name, identity }) => name === row.name && ['', row.identity].includes(identity));
    const check = (mark: Mark) => mirror !== undefined && requireOwnMark(mirror, config, mark, isFed);
    return ok(`${about}: ${await withTimeout(SINK_TIMEOUT_MS, (deadline) => sink.check(deadline, check))}`);
  } catch (error) {
    const text = `${about}: ${config.errorText(error)}`;
    return failed(text, `Check ${setting.env}, and the store that it names.`);
  } finally {
    await sink.close();
  }
}

/** Whether a view shows any product; of a mirror without products it is not known. */
function hasMatch({ products }: Store, view: View): boolean {
  for (let after = '', page = products.livingPage('', LOOKED_AT); ; page = products.livingPage(after, LOOKED_AT)) {
    if (page.some(({ vbid, body }) => view.of(vbid, body) !== null)) return true;
    if (page.length < LOOKED_AT) return after === '' && page.length === 0;
    after = page.at(-1)?.vbid ?? '';
  }
}

/** Names what a sink gets, and what in its view may be a mistake. */
function examineView(setting: SinkSetting, mirror: Store | null | undefined): Finding[] {
  const { where = '', fields = '', name } = setting;
  if (where + fields === '') return [];
  const bodies = mirror?.products.livingPage('', LOOKED_AT).map(({ body }) => body) ?? [];
  const names = { where: `${setting.env}_WHERE`, fields: `${setting.env}_FIELDS` };
  const view = viewOrNull(viewText(where, fields), names);
  const absence = createAbsence(view?.paths ?? []);
  for (const body of bodies) absence.see(body);
  const none = mirror && view?.where && !hasMatch(mirror, view) ? [noneText(mirror.products.living())] : [];
  const notes = [...absence.found().map(absentText), ...viewNotes(`${where}\n${fields}`, bodies)];
  const text = `${name} gets ${fields || 'the whole product'}, where ${where || 'every product'}`;
  const found = notes.length === 0 ? [] : [`Of the first ${plural(bodies.length, 'product')}: ${notes.join('; ')}`];
  const hint = [...none, ...found, `Correct ${setting.env}_WHERE or _FIELDS.`].join('. ');
  return [{ check: 'view', ...(none.length + found.length === 0 ? ok(text) : note(text, hint)) }];
}

/** Sends nothing. */
async function checkChannel(setting: SinkSetting): Promise<Result> {
  const config = channelConfig(setting);
  await config.make();
  return ok(
    `${config.name} (${config.kind}, ${config.address}): valid; try it: npx catchword notify test ${config.name}`,
  );
}

/** Sends requests only to the source of the mirror. */
async function examineMirroredSource(
  context: CommandContext,
  config: SourceConfig,
  mirror: Store | null,
): Promise<Finding[]> {
  const address = await examine('address', () => {
    const identity = sourceIdentity(config);
    if (mirror !== null) requireSameSource(mirror, identity);
    return ok(`${identity.address}${mirror?.source.noted() == null ? '' : ', as in the mirror'}`);
  });
  return address.level === 'ok' ? [address, ...(await examineSource(context, config, mirror))] : [address];
}

async function examineAll(context: CommandContext, withIndexes: boolean): Promise<Finding[]> {
  const findings: Finding[] = [{ check: 'Node.js', ...ok(process.version) }, ...examineSettings(context)];
  // The other checks can do without settings that are missing, but would check the wrong things with wrong ones.
  if (settingProblems(context.environment, 'nothing').length > 0) return findings;
  const config = checkedSettings(context.environment, 'nothing');
  const mirror = await examine('mirror', () => checkMirror(config, context.clock.now(), withIndexes));
  findings.push(mirror);
  if (mirror.level !== 'failed' && lookAt(config.db) !== undefined)
    findings.push(await examine('disk', () => checkDisk(config, context.clock.now())));
  const opened = openMirrorIfSound(config);
  try {
    const unused = opened == null ? [] : settingsNotInUse(context, opened);
    findings.push(...unused.map((text): Finding => ({ check: 'settings', level: 'note', text })));
    const configs = sinkConfigs(config.sinks, opened?.sinks.hasFed);
    // The settings of the others are wrong, which was said.
    const sinks = config.sinks.filter((_, at) => configs[at]?.problems === undefined);
    findings.push(...examineProxies(config, sinks));
    findings.push(await examine('Redis', () => checkRedis(config)));
    for (const sink of sinks)
      findings.push(await examine('sink', () => checkSink(sink, opened, configs)), ...examineView(sink, opened));
    for (const channel of config.channels) findings.push(await examine('channel', () => checkChannel(channel)));
    if (config.baseUrl === undefined || config.apiKey === undefined) return findings;
    return [...findings, ...(await examineMirroredSource(context, requireSource(config), opened ?? null))];
  } finally {
    opened?.close();
  }
}

function findingLines(c: Colours, { check, level, text, hint }: Finding): string[] {
  const mark = { ok: c.green('ok    '), note: c.yellow('note  '), failed: c.red('failed') }[level];
  const line = `${mark} ${check.padEnd(10)} ${text}`;
  return hint === undefined ? [line] : [line, `${' '.repeat(18)}${c.dim(hint)}`];
}

export function doctorCommand(context: CommandContext): Command {
  const command = new Command('doctor')
    .option('--integrity', 'also compare every index of the mirror with its table: about 5 s per GB')
    .option('--json', 'print one JSON document');
  return command.action(async (options: JsonOption & { readonly integrity?: boolean }) => {
    const findings = await examineAll(context, options.integrity === true);
    const text = findings.flatMap((finding) => findingLines(colours(context), finding));
    print(context, options, { json: findings, text });
    if (findings.some(({ level }) => level === 'failed')) context.setExitCode(1);
  });
}
