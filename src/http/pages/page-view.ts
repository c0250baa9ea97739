import type { Clock } from '@catchword/base/clock';
import { usageError } from '@catchword/base/errors';
import { wholeNumber } from '@catchword/base/whole-number';
import type { RunKind } from '@catchword/catalog/run-types';
import type { Plans } from '@catchword/catalog/tick';
import type { Rate } from '@catchword/pace/pace';
import type { ComponentChildren } from 'preact';
import type { EffectiveSetting } from '../../operate/effective-settings.ts';
import type { ConfiguredChannel } from '../../shown/shown-channel.ts';
import type { FetcherList } from '../../shown/shown-process.ts';
import type { MirrorState } from '../../state/mirror-state.ts';
import type { Store } from '../../store/store.ts';
import type { Steps } from '../read-steps.ts';

/** The parts that pages are made from. */
export interface PageParts {
  readonly store: Store;
  readonly clock: Clock;
  /** Asks the schedule when it starts the next runs, and which it missed. */
  readonly plans: (store: Store, nowMs: number) => Plans;
  /** The next runs that the schedule starts, the earliest first. */
  readonly upcoming: (nowMs: number, most: number) => readonly { readonly kind: RunKind; readonly at: number }[];
  /** Reads how the mirror is now. */
  readonly state: () => MirrorState;
  readonly steps: Steps;
  /** CATCHWORD_RATE_LIMIT; null without a limit. */
  readonly rateLimit: Rate | null;
  /** CATCHWORD_DELTA_OVERLAP: how long a run waits for late changes; milliseconds. */
  readonly overlapMs: number;
  /** The channels of the settings. */
  readonly channels: readonly ConfiguredChannel[];
  /** The settings of this process, without secrets. */
  readonly effective: readonly EffectiveSetting[];
  /** When this server began to serve. */
  readonly startedAt: number;
  /** Asks Redis for the fetchers; undefined without Redis. */
  readonly fetchers?: (() => Promise<FetcherList>) | undefined;
}

/** The address of a page: the values in its path, and its query. */
export interface Address {
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
}

/** A whole number of the query; null if it is absent or empty. @throws CatchwordError USAGE */
export function numberIn(query: URLSearchParams, name: string): number | null {
  const text = query.get(name);
  if (text === null || text === '') return null;
  const number = wholeNumber(text);
  if (number !== null) return number;
  throw usageError(`${name} is not a whole number`, `Remove ${name} from the address.`);
}

/** A page that is asked for. */
export interface Visit extends Address {
  /** What the view has found; undefined if it looked for nothing, or could not. */
  readonly found?: ComponentChildren;
  /** Says why it could not. */
  readonly problem?: string;
}

export interface Section {
  /** Unique on the page; the `id` of its element. */
  readonly id: string;
  /** Its heading; a section without one is not in the page's outline. */
  readonly title?: string;
  /** Whether it is rendered again every second, and sent to browsers that show the page if it has changed. */
  readonly live?: boolean;
  readonly content: ComponentChildren;
}

export interface Content {
  readonly title: string;
  /** How many problems are open: the tab shows it. */
  readonly problems?: number;
  /** Whether scripts draw pictures and charts on it. */
  readonly draws?: boolean;
  readonly sections: readonly Section[];
}

/** Shows a page and renders it from one state of the file. @throws what `View.show` and `render` throw */
export type Show = <Rendered>(render: (content: Content) => Rendered) => Rendered;

/** A page of the site. */
export interface View {
  /** Path as fastify matches it: `/runs/:id`. */
  readonly path: string;
  /** Searches or compares before the page is shown. Live sections are rendered without what it finds. */
  readonly find?: (parts: PageParts, address: Address) => Promise<ComponentChildren>;
  /** Does in steps what would hold up other requests, before the page or its stream begins. @throws as `show` does */
  readonly prepare?: (parts: PageParts, address: Address) => Promise<void>;
  /** @throws CatchwordError NOT_FOUND, USAGE: the browser gets a page that says so */
  readonly show: (parts: PageParts, visit: Visit) => Content;
}
