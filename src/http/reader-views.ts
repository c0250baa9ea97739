import { type GivenView, readerView, type View } from '../view/view.ts';
import type { HttpError } from './http-error.ts';
import { textParameter } from './parameters.ts';

/** Views that stay prepared, and different views that open streams may have. For safety: each judges every change. */
const MOST = 16;

export const TOO_MANY_VIEWS = {
  code: 'TOO_MANY_VIEWS',
  message: `open streams have ${MOST} different views (where and fields), which is the limit`,
  hint: 'Use the view of another stream, close streams that are not in use, or page through /api/changes.',
  headers: { 'retry-after': '10' },
} as const satisfies HttpError;

/** The parameters that make a view. */
export const VIEW_PARAMETERS = {
  where: textParameter(
    'Only products for which this is true: an SQL expression over the columns of the view `catalog`, and `body`.',
    (text) => text.trim() !== '',
    "Use an expression such as format = 'epub', or omit it.",
  ).optional(),
  fields: textParameter(
    'What to send of a product: members between commas, or an SQL expression that yields a JSON object. Without it: all.',
    (text) => text.trim() !== '',
    'Use members such as title,variants, or omit it.',
  ).optional(),
};

/** A view, prepared once for all readers that have the same. */
interface ReaderView {
  /** Null for whole products. */
  readonly view: View | null;
  /** Open streams that have it. */
  streams: number;
}

export type ReaderViews = ReturnType<typeof createReaderViews>;

export function createReaderViews() {
  /** By what readers gave; the one that was used last comes last. */
  const known = new Map<string, ReaderView>();

  return {
    /** @throws CatchwordError USAGE if an expression is not valid */
    of: ({ where, fields }: GivenView): ReaderView => {
      const key = JSON.stringify([where, fields]);
      const found = known.get(key) ?? { view: readerView({ where, fields }), streams: 0 };
      known.delete(key);
      known.set(key, found);
      const [oldest, ...idle] = [...known].filter(([, { streams }]) => streams === 0);
      if (oldest !== undefined && idle.length >= MOST) known.delete(oldest[0]);
      return found;
    },
    /** Whether one more stream may have this view. */
    mayStream: ({ view, streams }: ReaderView): boolean =>
      view === null || streams > 0 || [...known.values()].filter((one) => one.view && one.streams > 0).length < MOST,
  };
}
