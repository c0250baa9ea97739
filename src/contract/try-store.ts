import { CatchwordError } from '@catchword/base/errors';
import type { SinkSetting } from '@catchword/settings/config';
import type { Mark, Sink } from '@catchword/sink-kit/sink';
import { withTimeout } from '@catchword/sink-kit/with-timeout';
import { KINDS } from '../relay/kinds/kinds.ts';
import { type SinkConfig, sinkConfig } from '../relay/sink-config.ts';
import { sinkChecks } from './checks.ts';
import { isOfContract } from './harness.ts';

const CALL_TIMEOUT_MS = 30_000;

/** What became of one check. */
export interface Tried {
  readonly check: string;
  readonly result: 'passed' | 'failed' | 'skipped';
  /** Why, or what stays, without secrets; null: nothing to say. */
  readonly reason: string | null;
}

/** @throws CatchwordError SINK_CONFLICT if the store has data of others, or could not be removed; what the store throws */
async function requireScratch({ kind }: SinkConfig, sink: Sink, signal: AbortSignal): Promise<void> {
  if (sink.drop === undefined && KINDS[kind]?.incomparable === undefined) {
    const problem = 'a check would find what the one before has left. Let the module have a drop(), see catchword/sink';
    throw new CatchwordError('SINK_CONFLICT', problem);
  }
  const refuse = (): never => {
    const hint =
      'Name one that need not exist, with table=, stream=, subject= or another path: it is removed in the end';
    throw new CatchwordError('SINK_CONFLICT', `this store has data that is not of an earlier try. ${hint}`);
  };
  const requireOwn = (mark: Mark): void => {
    if (!isOfContract(mark)) refuse();
  };
  await sink.check(signal, requireOwn);
  const start = { incarnation: 'contract', generation: 1, cursor: 0, at: 0, late: 0 };
  const position = await sink.open(start, 0, signal);
  if (position !== null) return requireOwn(position);
  const listing = { whole: false, positions: false };
  for await (const { length } of sink.list?.(listing, null, start, signal) ?? []) if (length > 0) refuse();
}

/**
 * Runs the contract against a store that nothing else may use, and removes the store after each check.
 * @throws CatchwordError CONFIG_INVALID; the reason of `signal`
 */
export async function* tryStore(setting: SinkSetting, signal: AbortSignal): AsyncGenerator<Tried> {
  const config = sinkConfig(setting);
  // A wrong option is an error of the address, not of the store.
  const made = await config.make().catch((error: unknown) => {
    if (error instanceof CatchwordError) throw error;
  });
  await made?.close().catch(() => {});
  const kept = new Set<string>();
  /** Why the next check would not find an empty store. */
  let stuck: string | null = null;
  let canRead = false;

  async function attempt(check: string, work: () => Promise<unknown>): Promise<Tried> {
    try {
      await work();
      return { check, result: 'passed', reason: null };
    } catch (error) {
      signal.throwIfAborted();
      return { check, result: 'failed', reason: config.errorText(error) };
    }
  }

  async function withSink(work: (sink: Sink, deadline: AbortSignal) => Promise<void>): Promise<void> {
    const sink = await config.make();
    try {
      await withTimeout(CALL_TIMEOUT_MS, (deadline) => work(sink, deadline));
    } finally {
      await sink.close();
    }
  }

  async function remove(): Promise<void> {
    try {
      await withSink(async (sink, deadline) => {
        const stays = (await sink.drop?.(deadline)) ?? 'what the receiver made of the requests';
        if (stays !== '') kept.add(stays);
      });
    } catch (error) {
      stuck = `the store could not be removed: ${config.errorText(error)}`;
    }
  }

  const first = await attempt('the store has no data of others, and can be written', () =>
    withSink(async (sink, deadline) => {
      canRead = sink.list !== undefined;
      await requireScratch(config, sink, deadline);
    }),
  );
  yield first;
  if (first.result === 'failed') return;
  await remove();
  const { url, secret, module } = setting;
  const given = { ...(secret !== undefined && { secret }), ...(module !== undefined && { module }) };
  const target = { url, ...given, verifies: canRead, remove };
  for (const { name, interrupts, run } of sinkChecks({ effectivelyOnce: false, signal, prepare: async () => target })) {
    const reason = interrupts ? 'it needs a store that stops meanwhile' : stuck;
    yield reason === null ? await attempt(name, run) : { check: name, result: 'skipped', reason };
  }
  if (!canRead) {
    const reason = 'this kind has no list(), so only deliveries and positions were checked';
    yield { check: 'the store has what was delivered', result: 'skipped', reason };
  }
  const stays = kept.size === 0 ? null : `${[...kept].join('; ')} stays`;
  yield { check: 'the store is removed', result: stuck === null ? 'passed' : 'failed', reason: stuck ?? stays };
}
