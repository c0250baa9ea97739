import { CatchwordError, EXIT, usageError } from '@catchword/base/errors';
import { printable } from '@catchword/base/printable';
import type { SinkAction } from '../../../operate/decisions/decision-types.ts';
import { covers, requireSink } from '../../../operate/decisions/sink-actions.ts';
import { carryOutNow } from '../../../operate/decisions/submit-decision.ts';
import { checkJson } from '../../../report/sink-report.ts';
import type { SinkRow } from '../../../store/rows/sink-rows.ts';
import type { CheckRequest, SinkCheck } from '../../../store/schema/sink-tables.ts';
import type { Store } from '../../../store/store.ts';
import type { CommandContext } from './command-context.ts';
import type { JsonOption, Result } from './output-format.ts';
import { commandUser } from './person-notices.ts';

const POLL_MS = 100;

export interface VerifyOptions extends JsonOption {
  readonly deep?: boolean;
  readonly repair?: boolean;
  readonly extra?: boolean;
}

/** Quotes a key that would look like another one. */
function keyText(vbid: string): string {
  const isPlain = printable(vbid).trim() === vbid && !vbid.startsWith('"');
  return printable(isPlain ? vbid : JSON.stringify(vbid));
}

/** The decision that these options make. */
function actionOf({ deep, repair, extra }: VerifyOptions): SinkAction {
  if (extra === true) {
    if (repair !== true) throw usageError('--extra removes products, so it needs --repair', 'Add --repair.');
    return 'repair-all';
  }
  const action = repair === true ? 'repair' : 'verify';
  return deep === true ? `${action}-deep` : action;
}

function notCompared(name: string, why: string, what = 'compared'): CatchwordError {
  return new CatchwordError('SINK_UNVERIFIED', `the store of ${name} was not ${what}: ${why}`);
}

/** The sink, while its relay can compare its store. @throws CatchwordError SINK_UNVERIFIED */
function fedSink({ clock }: CommandContext, store: Store, name: string): SinkRow {
  const row = requireSink(store, name);
  if (store.relayLease.holder(clock.now()) === null) {
    throw notCompared(name, 'no daemon or relay is running. Start one: npx catchword daemon');
  }
  if (row.state !== 'running') throw notCompared(name, `it is ${row.state}. See: npx catchword sink list`);
  if (row.retryAt !== null) throw notCompared(name, `it is failing: ${row.error}`);
  return row;
}

/** Waits for the result of the request. @param before the last result before it @throws CatchwordError SINK_UNVERIFIED */
async function resultOf(
  context: CommandContext,
  store: Store,
  name: string,
  asked: CheckRequest,
  before: string | undefined,
): Promise<SinkCheck> {
  for (let { id } = asked; ; ) {
    const { checked: found, checkAsked: next } = requireSink(store, name);
    // Whatever came after this request does the same, and maybe more; the result of either answers it.
    const isSame = found !== null && covers(found, asked) && found.id !== before;
    if (found !== null && (found.id === id || (next === null && isSame))) {
      if (found.error === null) return found;
      throw notCompared(name, found.error, found.repair ? 'fully repaired' : 'compared');
    }
    // An interrupted command puts back what was asked for before it, which may be less.
    if (next === null || !covers(next, asked)) throw notCompared(name, 'somebody has withdrawn the request');
    id = next.id;
    fedSink(context, store, name);
    await context.clock.sleep(POLL_MS, context.signal);
  }
}

/** Asks the relay to compare a store with its source, and waits for the result. */
export async function verifySink(
  context: CommandContext,
  store: Store,
  name: string,
  options: VerifyOptions,
): Promise<Result> {
  const decision = { who: commandUser(), action: actionOf(options), target: name, argument: null };
  fedSink(context, store, name);
  const { before, asked } = store.request(() => {
    const before = requireSink(store, name);
    carryOutNow(store, decision, context.clock.now());
    return { before, asked: requireSink(store, name).checkAsked };
  });
  if (asked === null) throw new Error('the mirror has lost the request');
  try {
    const { held } = await resultOf(context, store, name, asked, before.checked?.id);
    const found = checkJson(requireSink(store, name));
    if (found === null) throw new Error('the mirror has lost the comparison');
    if (found.remaining > 0) context.setExitCode(held === found.remaining ? EXIT.held : EXIT.differences);
    const examples = found.examples.map(({ vbid, difference, differs }) =>
      `  ${difference.padEnd(9)}  ${keyText(vbid)}  ${printable(differs.join(', '))}`.trimEnd(),
    );
    const head = `${name}, as of change ${found.cursor} (${found.compared}): ${found.found}`;
    return { json: found, text: [head, ...examples, ...(found.advice === '' ? [] : [found.advice])] };
  } finally {
    store.request(({ sinks }) => {
      const { id, checkAsked, checked } = requireSink(store, name);
      const earlier = before.checkAsked;
      // A comparison does no harm, and another command may wait for it, too. A repair goes, and what it replaced comes back.
      if (!asked.repair || checkAsked?.id !== asked.id || earlier?.id === asked.id) return;
      sinks.askCheck(id, earlier?.id === checked?.id ? null : earlier);
    });
  }
}
