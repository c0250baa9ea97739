import {
  approveSink,
  askCheck,
  pauseSink,
  replaySink,
  requireNotHeld,
  requireSink,
  skipEvent,
  skipRefused,
} from '../../relay/sink-operations.ts';
import { count, plural } from '../../report/text.ts';
import type { SinkRow } from '../../store/rows/sink-rows.ts';
import type { RequestWriter } from '../../store/schema/writers.ts';
import type { SinkAction } from './decision-types.ts';

function replay(store: RequestWriter, sink: SinkRow, from: number): string {
  replaySink(store, sink, from);
  const all = `every product as of change ${count(store.changes.lastSeq())}, and then what follows`;
  const waits = sink.state === 'running' ? '' : `; this waits until it is resumed, because it is ${sink.state}`;
  return `${sink.name} gets ${from === 0 ? all : `every change from ${count(from)} on`}${waits}`;
}

function skipped(store: RequestWriter, sink: SinkRow, count: number): string {
  if (count === 0) return `${sink.name} has not refused any event`;
  const now = requireSink(store, sink.name);
  const delivered = now.state === 'running' ? 'are delivered now' : `wait, because ${sink.name} is ${now.state}`;
  return `${plural(count, 'event')} skipped; later ones of the same products ${delivered}`;
}

function released(store: RequestWriter, sink: SinkRow, newest: boolean): string {
  const held = approveSink(store, sink, newest);
  if (held.why === 'view') return `${sink.name} gets what its changed view changes`;
  const what = newest ? 'each product that differs now, once' : `the changes of run ${held.run}, and what follows`;
  return `${sink.name} gets ${what}`;
}

/**
 * Carries out a decision about a sink, in a write transaction of its caller.
 * @param argument of `replay`: the change to start from, 0 for all current products; of `skip`: the event; else null
 * @returns what was done, one sentence
 * @throws CatchwordError NOT_FOUND, USAGE
 */
export function changeSink(
  store: RequestWriter,
  action: SinkAction,
  name: string,
  argument: number | null,
  nowMs: number,
): string {
  const { sinks } = store;
  const sink = requireSink(store, name);
  if (['resume', 'retry', 'skip', 'skip-all'].includes(action)) requireNotHeld(sink);
  switch (action) {
    case 'pause':
      pauseSink(store, sink);
      return `${name} is paused`;
    case 'resume':
      sinks.setState(sink.id, 'running');
      return `${name} resumes after change ${count(sink.cursor)}`;
    case 'retry': {
      const freed = sinks.retry(sink.id);
      sinks.setState(sink.id, 'running');
      return freed === 0 ? `${name} is resumed; nothing is parked` : `${name} gets ${plural(freed, 'event')} again`;
    }
    case 'replay':
      return replay(store, sink, argument ?? 0);
    case 'skip':
      return skipped(store, sink, skipEvent(store, sink, argument ?? 0, nowMs));
    case 'skip-all':
      return skipped(store, sink, skipRefused(store, sink, nowMs));
    case 'release':
    case 'release-newest':
      return released(store, sink, action === 'release-newest');
    case 'verify':
    case 'verify-deep':
    case 'repair':
    case 'repair-deep':
    case 'repair-all':
      askCheck(store, sink, {
        deep: action.endsWith('-deep') || action === 'repair-all',
        repair: action.startsWith('repair'),
        removesAll: action === 'repair-all',
      });
      return `the relay compares ${name} with its source${action.startsWith('repair') ? ', and repairs it' : ''}`;
  }
}
