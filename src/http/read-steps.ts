import type { Clock } from '@catchword/base/clock';
import { eventId, eventText } from '@catchword/catalog/event';
import type { ChangeFilter } from '@catchword/catalog/run-types';
import { compareView } from '../report/sink-preview.ts';
import { eventSource } from '../store/rows/source-state.ts';
import type { Store } from '../store/store.ts';
import { createAbsence } from '../view/absent-members.ts';
import { createViewReader } from '../view/read-view.ts';
import { type GivenView, readerView, type View } from '../view/view.ts';

/*
 * What a search, a page or a stream reads at once. With a view, a reader's own expressions are evaluated: this is done where
 * it can be killed and where no secret is, in the process of searches (search-subprocess.ts).
 */

/** A step ends with the product that it judges after so many milliseconds: others wait. */
const SLOW_STEP_MS = 250;
/** A preview ends before the process would be killed, milliseconds. */
const PREVIEW_MS = 1_500;
/** Views that stay prepared. */
const MOST_VIEWS = 16;
/** Events per batch. For safety: more would block the process. */
const BATCH = 100;
/** A batch ends with the event that reaches this many characters. For safety: each reader may hold a batch. */
const BATCH_CHARACTERS = 65_536;

const failuresOf = (view: View | null): number => view?.failures().count ?? 0;

export type ReadSteps = ReturnType<typeof createReadSteps>;

/** The same, asked of a process. @throws CatchwordError SEARCH_TIMEOUT, INTERRUPTED besides */
export type Steps = {
  readonly [Name in keyof ReadSteps]: (
    ...given: Parameters<ReadSteps[Name]>
  ) => Promise<Awaited<ReturnType<ReadSteps[Name]>>>;
};

/**
 * Each throws CatchwordError MIRROR_REPLACED, and USAGE if the view is not valid.
 * @param fallback the `source` of events if the mirror has not stored its own
 */
export function createReadSteps(store: Store, fallback: string, clock: Clock) {
  const reader = createViewReader(store);
  const prepared = new Map<string, View | null>();
  /** Size of a change of the batch before: changes next to each other are alike. */
  let changeCharacters = BATCH_CHARACTERS / BATCH;

  /** The view that was used last comes last. */
  function viewOf({ where, fields }: GivenView): View | null {
    const key = JSON.stringify([where, fields]);
    const view = prepared.get(key) ?? readerView({ where, fields });
    prepared.delete(key);
    prepared.set(key, view);
    const [oldest = key] = prepared.keys();
    if (prepared.size > MOST_VIEWS) prepared.delete(oldest);
    return view;
  }

  /** Reads one state of the file. A mirror that was restored meanwhile has other products, and other changes at the same numbers. */
  const readNow = <T>(work: () => T): T =>
    store.read(() => {
      store.check();
      return work();
    });

  function slowAfter(ms: number): () => boolean {
    const endsAt = clock.now() + ms;
    return () => clock.now() > endsAt;
  }

  return {
    search: (text: string, limit: number) => store.search(text, limit),
    /** @returns what names a view, in ids too */
    digest: (given: GivenView): string => viewOf(given)?.digest ?? '',
    /** Reads products after a key: what the reader gets of them, as elements of a JSON array, and what was read for it. */
    products: (given: GivenView, after: string, atOnce: number, limit: number, asOf: number) => {
      const view = viewOf(given);
      const [isSlow, before] = [slowAfter(SLOW_STEP_MS), failuresOf(view)];
      const absence = createAbsence(view?.paths ?? []);
      const { products, read, next } = readNow(() => reader.products(after, atOnce, limit, view, isSlow, asOf));
      for (const { body } of read) absence.see(body);
      return {
        next,
        // Unparsed, so that no number is rounded.
        text: products.map(({ body }) => body).join(','),
        count: products.length,
        read: read.length,
        readCharacters: read.reduce((sum, { body }) => sum + body.length, 0),
        failed: failuresOf(view) - before,
        /** Members that the view names and no product of these has. */
        absent: absence.paths(),
        isSlow: isSlow(),
      };
    },
    /** Reads as many changes as fit a batch. @returns also how far the log was searched, and how many records were read for it */
    changes: (given: GivenView, seq: number, limit = BATCH, filter: ChangeFilter = {}) => {
      const view = viewOf(given);
      const [isSlow, before] = [slowAfter(SLOW_STEP_MS), failuresOf(view)];
      return readNow(() => {
        const source = eventSource(store.source, fallback);
        const fitting = Math.ceil(BATCH_CHARACTERS / changeCharacters);
        const events = [];
        let characters = 0;
        const { changes, read, ...found } = reader.changes(seq, Math.min(BATCH, fitting), limit, filter, view, isSlow);
        for (const change of changes) {
          const text = eventText(change, store.incarnation, source);
          events.push({ seq: change.seq, id: eventId(store.incarnation, change), text });
          characters += text.length;
          if (characters >= BATCH_CHARACTERS) break;
        }
        const readCharacters = read.reduce((sum, { body, before: was }) => sum + (body ?? was ?? '').length, 0);
        if (read.length > 0)
          changeCharacters = Math.max(characters / (events.length || 1), readCharacters / read.length);
        const to = events.length < changes.length ? (events.at(-1)?.seq ?? seq) : found.to;
        return { events, to, read: read.length, failed: failuresOf(view) - before, isSlow: isSlow() };
      });
    },
    /** Compares what a sink has with what a view would send it, for a while. @returns also how many products were judged */
    preview: async (sink: string, given: GivenView) => {
      const isOver = slowAfter(PREVIEW_MS);
      let judged = 0;
      const goOn = (): boolean => {
        judged++;
        return !isOver();
      };
      const { signal } = new AbortController();
      const row = store.sinks.get(sink) ?? null;
      const comparison = await compareView(store, sink, row, viewOf(given), signal, goOn);
      return { judged, comparison };
    },
  };
}

/** The same steps, for who could also ask a process. */
export function inThisThread(steps: ReadSteps): Steps {
  return {
    search: async (...given) => steps.search(...given),
    digest: async (given) => steps.digest(given),
    products: async (...given) => steps.products(...given),
    changes: async (...given) => steps.changes(...given),
    preview: steps.preview,
  };
}
