import { randomUUID } from 'node:crypto';
import { isSinkError } from '@catchword/sink-kit/sink';
import { remaining, type SinkRow } from '../store/rows/sink-rows.ts';
import type { CheckRequest, SinkCheck } from '../store/schema/sink-tables.ts';
import { checkText } from './check-text.ts';
import type { FeedContext } from './feed-context.ts';
import { isFatal } from './feed-failure.ts';
import { compareStore } from './reconcile.ts';
import type { Session } from './sink-session.ts';

/*
 * When a store is compared with its source: asked for (a row in the mirror), or due. Only between two deliveries, once the
 * store has got a whole fill: before that, it has what is not in the mirror, and lacks what is.
 */

function wantedCheck({ config, clock }: FeedContext, row: SinkRow): CheckRequest | null {
  if (row.checkAsked !== null) return row.checkAsked;
  const every = config.verifyEveryMs;
  // A time in the future shows that the clock was put back.
  if (every === undefined || Math.abs(clock.now() - (row.checked?.at ?? 0)) < every) return null;
  return { id: randomUUID(), deep: true, repair: false, removesAll: false };
}

function report({ config, log }: FeedContext, check: SinkCheck): void {
  const { cursor, error } = check;
  const fields = { sink: config.name, cursor, reason: checkText(config, check).found };
  if (error !== null) log.error({ code: 'SINK_UNVERIFIED', ...fields }, 'the store could not be compared');
  else if (remaining(check) === 0) log.info(fields, 'the store equals its source');
  else log.error({ code: 'SINK_DIFFERS', ...fields }, 'the store differs from its source; see npx catchword sink list');
}

/**
 * Compares the store with its source if that is asked for, or due.
 * @param wasIdle whether the sink had nothing to do before: then its connection may have been ended meanwhile
 * @returns whether it did
 * @throws SinkError of such a connection: the request stays, for the next one
 */
export async function checkWhenWanted(
  context: FeedContext,
  session: Session,
  row: SinkRow,
  wasIdle: boolean,
): Promise<boolean> {
  const { clock, leased, stopping, acks } = context;
  const { list, digests, apply } = session.listed;
  if (!session.hasFillEnded(row)) return false;
  const request = wantedCheck(context, row);
  if (request === null) return false;
  acks.flush();
  const noCounts = { same: 0, differing: 0, missing: 0, extra: 0, repaired: 0, held: 0, notJudged: 0 };
  const unread = { cursor: row.cursor, compared: '', allows: 'comparison', examples: [] } as const;
  const common = { ...noCounts, ...request, ...unread };

  function note(check: Omit<SinkCheck, 'at'>): void {
    const ended = { ...check, at: clock.now() };
    leased.write(({ sinks }) => sinks.noteCheck(row.id, ended));
    report(context, ended);
  }

  try {
    if (list === undefined) {
      note({ ...common, allows: 'nothing', error: 'its module has no list' });
      return true;
    }
    const positions = row.legs.every(({ tag, what }) => tag === null && what !== 'difference');
    const compares = (whole: boolean): string | null => digests?.compares?.({ whole, positions }) ?? null;
    const deep = request.deep || compares(false) === null;
    const result = await compareStore(context, session, row, request, { whole: deep, positions });
    const allows = apply === undefined ? 'comparison' : 'repair';
    note({ ...common, ...result, deep, compared: compares(deep) ?? 'keys and whole values', allows });
  } catch (error) {
    if (stopping.aborted || isFatal(error)) throw error;
    if (wasIdle && isSinkError(error) && error.connectionLost) throw error;
    note({ ...common, error: context.errorText(error) });
    // The connection may be of no use any more.
    if (isSinkError(error)) throw error;
  } finally {
    // Deliveries note them.
    context.noteViewFailures(false);
  }
  return true;
}
