import { heldRuns } from '../../report/run-report.ts';
import { heldSinkText, holdNumber } from '../../report/sink-report.ts';
import { plural } from '../../report/text.ts';
import { sinkPath } from '../../shown/shown-sink.ts';
import type { Store } from '../../store/store.ts';
import type { Section } from './page-view.ts';
import { Shown } from './untrusted-text.tsx';

/** What may be decided at once. The rest follows when these are decided. */
const LISTED = 50;
/** Removals are counted up to this, because the list is read every second. */
const COUNTED = 1_000;

/** What waits for an approval: a held run or sink, as `readDecisions` reads it, with the reason. */
function waitingOf(store: Store) {
  const runs = heldRuns(store, store.runs.held().slice(0, LISTED), COUNTED + 1).map(({ run, removals, reason }) => {
    const many = removals > COUNTED ? `more than ${plural(COUNTED, 'product')}` : plural(removals, 'product');
    const text = `would remove ${many}${reason === null ? '' : `: ${reason}`}`;
    return { of: `run:${run}`, name: `Run ${run}`, href: `/runs/${run}`, text };
  });
  const sinks = store.sinks.list().flatMap((row) => {
    const held = heldSinkText(store, row);
    if (held === null) return [];
    return {
      of: `sink:${row.name}:${holdNumber(row)}`,
      name: `Sink ${row.name}`,
      href: sinkPath(row.name),
      text: held.reason,
    };
  });
  return [...runs, ...sinks].slice(0, LISTED);
}

/** One form for all that waits for an approval; empty if nothing does. */
export function severalSection(store: Store): Section {
  const waiting = waitingOf(store);
  const section = { id: 'several', live: true } as const;
  if (waiting.length === 0) return { ...section, content: null };
  const content = (
    <form method="post" action="/actions" class="several">
      <ul>
        {waiting.map(({ of, name, href, text }) => (
          // The id keeps a tick at its own line when others come or go.
          <li id={`several-${of}`}>
            <input type="checkbox" name="of" value={of} id={`tick-${of}`} />{' '}
            <label for={`tick-${of}`}>
              <strong>{name}</strong>: <Shown text={text} most={500} />
            </label>{' '}
            <a href={href}>{`Look at ${name.toLowerCase()}`}</a>
          </li>
        ))}
      </ul>
      <p>
        Approve removes the products of a run, and lets a sink go on. Reject keeps the products of a run; a sink cannot
        be rejected. Each is decided by itself, and listed below with what came of it.
      </p>
      <button type="submit" name="verdict" value="approve">
        Approve what is ticked
      </button>{' '}
      <button type="submit" name="verdict" value="reject">
        Reject the ticked runs
      </button>
    </form>
  );
  return { ...section, title: 'Decide about several at once', content };
}
