import type { FastifyInstance, FastifyRequest } from 'fastify';
import { RUN_ACTIONS, readDecisions, SINK_ACTIONS } from '../../operate/decisions/decision-types.ts';
import { decide } from '../../operate/decisions/submit-decision.ts';
import { DECISION } from '../../shown/shown-decision.ts';
import type { ActionRow } from '../../store/rows/decision-rows.ts';
import type { Store } from '../../store/store.ts';
import { DECISION_FILTERS } from '../list-filters.ts';
import { prefixOf } from '../path-prefix.ts';
import { askedFor, List, pageOf } from './page-list.tsx';
import { ShownTable } from './page-shown.tsx';
import type { PageParts, Section, View } from './page-view.ts';
import { operatorOf } from './session.ts';
import { severalSection } from './several-decisions.tsx';

const PATH = '/actions';
/** Decisions on one page. */
const PAGE = 50;
/** Decisions that the page of a run or a sink shows. */
const NEWEST = 10;

function decisionTable(store: Store, found: readonly ActionRow[], nowMs: number, none: string) {
  if (found.length === 0) return <p>{none}</p>;
  return (
    <ShownTable
      caption="Decisions, a table"
      isCaptionHidden
      isNamed={false}
      rows={DECISION}
      all={found.map((row) => ({ ...row, store, nowMs }))}
      idOf={({ id }) => `decision-${id}`}
    />
  );
}

/**
 * The newest ten decisions of operators about a run (a number) or a sink (its name); about anything if none is given.
 * Decisions to start a run have no run or sink.
 */
export function decisionsSection(store: Store, nowMs: number, target?: number | string): Section {
  const names = typeof target === 'number' ? RUN_ACTIONS : SINK_ACTIONS;
  const rows = target === undefined ? store.actions.list(NEWEST) : store.actions.of(String(target), names, NEWEST);
  const content = decisionTable(store, rows, nowMs, 'No decision yet.');
  return { id: 'decisions', title: 'Decisions', live: true, content };
}

/** Every decision, the newest first. */
export const actions: View = {
  path: PATH,
  show: ({ store, clock }, { query }) => {
    const asked = askedFor(query, DECISION_FILTERS);
    const { shown, next } = pageOf(store.actions.list(PAGE + 1, asked.only), PAGE, ({ id }) => id);
    const none = 'No decision yet. What operators decide on these pages, or with a command, is listed here.';
    const isWhole = asked.isNewest && Object.keys(asked.given).length === 0;
    const list = (
      <List name="decisions" path={PATH} filters={DECISION_FILTERS} asked={asked} next={next}>
        {decisionTable(store, shown, clock.now(), isWhole ? none : 'No such decision.')}
      </List>
    );
    const sections = [
      ...(asked.isNewest ? [severalSection(store)] : []),
      { id: 'decisions', live: asked.isNewest, content: list },
    ];
    return { title: 'Decisions', sections };
  },
};

/** The page to which the browser returns: the page that it came from, if this server has it. */
function backTo(request: FastifyRequest): string {
  const { referer, host } = request.headers;
  if (referer === undefined || !URL.canParse(referer)) return PATH;
  const from = new URL(referer);
  // The redirect puts the prefix there again.
  from.pathname = from.pathname.replace(new RegExp(`^${prefixOf(request)}(?=/|$)`), '');
  // `//name/…` would lead to another server.
  return from.host === host && !from.pathname.startsWith('//') ? from.pathname + from.search : PATH;
}

/** How often, and after how many milliseconds, a decision is looked at, so that the page shows what the daemon made of it. */
const [LOOKS, LOOK_MS] = [40, 50];

/** The longest form, in bytes: 50 ticks with long names of sinks. */
const MAX_FORM = 16_384;

/** Takes decisions from forms. `addAuth` has checked the request before, as for every route with `config.action`. */
export function addActions(app: FastifyInstance, { store, clock }: Pick<PageParts, 'store' | 'clock'>): void {
  app.post(PATH, { config: { action: true }, bodyLimit: MAX_FORM }, async (request, reply) => {
    // Each by itself: one that is not possible any more is recorded with the reason, and the others are carried out.
    const ids = readDecisions(request.body, operatorOf(request)).map((one) => decide(store, one, clock.now()));
    const isAsked = (): boolean => ids.some((id) => store.actions.get(id)?.state === 'asked');
    for (let looks = 0; looks < LOOKS && isAsked(); looks++) await clock.sleep(LOOK_MS);
    return reply.redirect(`${backTo(request)}#decision-${ids.at(-1)}`, 303);
  });
}
