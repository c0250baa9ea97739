import type { Clock } from '@catchword/base/clock';
import type { FastifyInstance } from 'fastify';
import * as z from 'zod';
import { requireSink } from '../operate/decisions/sink-actions.ts';
import { seenSinks } from '../report/sink-report.ts';
import { DECISION, DECISION_SCHEMA } from '../shown/shown-decision.ts';
import { PARKED, PARKED_SCHEMA } from '../shown/shown-parked.ts';
import { PROBLEM, PROBLEM_SCHEMA, seenProblems } from '../shown/shown-problem.ts';
import { PROCESS, PROCESS_SCHEMA, seenProcesses } from '../shown/shown-process.ts';
import { REJECTED, REJECTED_SCHEMA } from '../shown/shown-rejected.ts';
import { jsonOf, type Row } from '../shown/shown-row.ts';
import { RUN, RUN_SCHEMA } from '../shown/shown-run.ts';
import { SETTING, SETTING_SCHEMA } from '../shown/shown-setting.ts';
import { SINK, SINK_SCHEMA } from '../shown/shown-sink.ts';
import {
  DECISION_FILTERS,
  PARKED_FILTERS,
  PROBLEM_FILTERS,
  RANGE,
  REJECTED_FILTERS,
  RUN_FILTERS,
  SINK_FILTERS,
} from './list-filters.ts';
import type { PageParts } from './pages/page-view.ts';
import { parameters, wholeNumber } from './parameters.ts';
import { sending } from './route-schema.ts';

const LIMIT = { limit: wholeNumber('How many to return at most.', 20, 1, 1000) };
const NAMED = {
  params: parameters({ name: z.string().meta({ description: 'The name of the sink.', example: 'shop' }) }),
};

/** A list over HTTP, as its command prints it with `--json`. */
interface Listing<Of, Q extends z.ZodObject> {
  readonly path: string;
  /** In /openapi.json. */
  readonly about: readonly [operationId: string, summary: string, description: string];
  readonly rows: readonly Row<Of>[];
  readonly schema: z.ZodType;
  readonly query: Q;
  /** What it lists, of the sink that its path names. */
  readonly find: (query: z.output<Q>, sink: string) => readonly Of[];
  /** Asks elsewhere for more. */
  readonly ask?: () => Promise<readonly Of[]>;
}

export type ListParts = Pick<PageParts, 'store' | 'state' | 'effective' | 'startedAt' | 'fetchers'> & {
  readonly clock: Clock;
};

/** Makes a function that serves a list. Each answer shows one state of the file. */
function listsOf(app: FastifyInstance, store: PageParts['store']) {
  return <Of, Q extends z.ZodObject>({
    path,
    about,
    rows,
    schema,
    query: querystring,
    find,
    ask,
  }: Listing<Of, Q>): void => {
    const [operationId, summary, description] = about;
    const named = path.includes(':name') ? { ...NAMED, errors: [404] as const } : {};
    const answer = z.array(schema).readonly().meta({ description: summary });
    const route = sending(answer, { operationId, summary, description, tags: ['mirror'], querystring, ...named });
    app.get<{ Params: { name?: string } }>(path, { schema: route }, async ({ query, params: { name = '' } }) => {
      const more = (await ask?.()) ?? [];
      return store.read(() => [...find(query as z.output<Q>, name), ...more].map((one) => jsonOf(rows, one)));
    });
  };
}

/** Serves the lists that `src/shown` declares. */
export function addLists(app: FastifyInstance, parts: ListParts): void {
  const { store, state, effective, startedAt, fetchers, clock } = parts;
  const add = listsOf(app, store);

  add({
    path: '/api/settings',
    about: [
      'listSettings',
      'The settings in use, by subject',
      'The settings of the process that answers, as `catchword settings --json` prints them; without secrets, and as they were when it started.',
    ],
    rows: SETTING,
    schema: SETTING_SCHEMA,
    query: parameters({}),
    find: () => effective,
  });
  add({
    path: '/api/processes',
    about: [
      'listProcesses',
      'The processes',
      'The processes that work on the mirror, and with Redis the fetchers; those that stand by are not known.',
    ],
    rows: PROCESS,
    schema: PROCESS_SCHEMA,
    query: parameters({}),
    find: () => seenProcesses(store, clock.now(), startedAt),
    ask: async () => (await fetchers?.())?.fetchers ?? [],
  });
  add({
    path: '/api/sinks',
    about: [
      'listSinks',
      'The sinks, by their names',
      'The stores that the change log feeds, as `catchword sink list --json` prints them.',
    ],
    rows: SINK,
    schema: SINK_SCHEMA,
    query: parameters({
      ...SINK_FILTERS,
      after: z.string().optional().meta({ description: 'Only sinks whose names come after this one.' }),
      ...LIMIT,
    }),
    find: ({ state: only, after = '', limit }) => {
      const found = seenSinks(store, clock.now()).filter(({ name }) => name > after);
      return found.filter((sink) => only === undefined || sink.state === only).slice(0, limit);
    },
  });
  add({
    path: '/api/decisions',
    about: [
      'listDecisions',
      'What operators decided, the newest first',
      'Decisions on the page and with commands, as `catchword decisions --json` prints them.',
    ],
    rows: DECISION,
    schema: DECISION_SCHEMA,
    query: parameters({ ...DECISION_FILTERS, ...RANGE, ...LIMIT }),
    find: ({ limit, ...only }) => store.actions.list(limit, only).map((row) => ({ ...row, store, nowMs: clock.now() })),
  });
  add({
    path: '/api/problems',
    about: [
      'listProblems',
      'Problems, the oldest first',
      'Problems as they were noticed for notifications: those that are open, as `episodes` of `catchword status --json`; with `state=ended` those of the last 90 days that are over.',
    ],
    rows: PROBLEM,
    schema: PROBLEM_SCHEMA,
    query: parameters({
      ...PROBLEM_FILTERS,
      after: wholeNumber('Only problems after this one.', 0, 0),
      limit: wholeNumber('How many to return at most.', 1000, 1, 1000),
    }),
    find: ({ limit, state: which = 'open', ...only }) =>
      seenProblems(store, state(), store.episodes.list(limit, { ...only, state: which })),
  });
  add({
    path: '/api/runs',
    about: ['listRuns', 'The runs, the newest first', 'The loads of the catalog, with what each has proven.'],
    rows: RUN,
    schema: RUN_SCHEMA,
    query: parameters({ ...RUN_FILTERS, ...RANGE, ...LIMIT }),
    find: ({ limit, ...only }) => store.runs.list(limit, only),
  });
  add({
    path: '/api/sinks/:name/parked',
    about: [
      'listParkedEvents',
      'The parked events of a sink, the oldest first',
      'Events that a store rejected for good, and those that wait behind them, as `sink parked NAME --json`.',
    ],
    rows: PARKED,
    schema: PARKED_SCHEMA,
    query: parameters({ ...PARKED_FILTERS, after: wholeNumber('Only events after this one.', 0, 0), ...LIMIT }),
    find: ({ after, limit, ...only }, name) => store.sinks.waiting(requireSink(store, name).id, after, limit, only),
  });
  add({
    path: '/api/rejected',
    about: [
      'listRejectedItems',
      'Items that no run could use, the newest first',
      'Items of the source that are not valid products, of all runs. Without `run`, the newest 50,000 are searched.',
    ],
    rows: REJECTED,
    schema: REJECTED_SCHEMA,
    query: parameters({ ...REJECTED_FILTERS, ...RANGE, ...LIMIT }),
    find: ({ limit, ...only }) => store.runs.rejected(limit, only),
  });
}
