import * as z from 'zod';
import type { GivenView } from '../view/view.ts';
import type { HttpError } from './http-error.ts';
import { textParameter } from './parameters.ts';
import type { Steps } from './read-steps.ts';

/** Views that stay known, and different views that open streams may have. For safety: each judges every change. */
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
    "Use an expression such as format = 'ePub', or omit it.",
  ).optional(),
  fields: textParameter(
    'What to send of a product: members between commas, or an SQL expression that yields a JSON object. Without it: all.',
    (text) => text.trim() !== '',
    'Use members such as title,variants, or omit it.',
  ).optional(),
};

/** Whether a reader waits, as sinks do, for a decision about an unusual run. */
export const APPROVED = z
  .enum(['true'], 'Use approved=true, or omit it.')
  .optional()
  .meta({
    description: 'As of the last change before an unusual run that is still a problem. Without it: the newest.',
  });

/** A view that a reader has. It is evaluated where `steps` are done, and not here. */
export interface ReaderView {
  readonly given: GivenView;
  /** Names the view in ids and positions; undefined for whole products. */
  readonly digest?: string;
  /** Open streams that have it. */
  streams: number;
}

/** Every product whole. */
export const WHOLE: ReaderView = { given: {}, streams: 0 };

export type ReaderViews = ReturnType<typeof createReaderViews>;

export function createReaderViews({ digest }: Pick<Steps, 'digest'>) {
  /** By what readers gave; the one that was used last comes last. */
  const known = new Map<string, ReaderView>();

  return {
    /** @throws CatchwordError USAGE if an expression is not valid, SEARCH_TIMEOUT */
    of: async ({ where, fields }: GivenView): Promise<ReaderView> => {
      if (where === undefined && fields === undefined) return WHOLE;
      const given = { where, fields };
      const key = JSON.stringify([where, fields]);
      const checked = known.get(key)?.digest ?? (await digest(given));
      // Another request may have noted it meanwhile.
      const found = known.get(key) ?? { given, digest: checked, streams: 0 };
      known.delete(key);
      known.set(key, found);
      const [oldest, ...idle] = [...known].filter(([, { streams }]) => streams === 0);
      if (oldest !== undefined && idle.length >= MOST) known.delete(oldest[0]);
      return found;
    },
    /** Whether one more stream may have this view. */
    mayStream: (view: ReaderView): boolean =>
      view === WHOLE || view.streams > 0 || [...known.values()].filter(({ streams }) => streams > 0).length < MOST,
  };
}
