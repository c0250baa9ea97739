import { COUNTED, type Overview } from '../../report/overview-report.ts';
import { count, plural, time } from '../../report/text.ts';
import { type ChannelSeen, channelTrouble } from '../../shown/shown-channel.ts';
import { sinkPath } from '../../shown/shown-sink.ts';
import { clipped, sentence } from './untrusted-text.tsx';

/** `1 removal`, or `more than 1,000 removals` where the counting stopped. */
function counted(value: number, noun: string): string {
  return value > COUNTED ? `more than ${count(COUNTED)} ${noun}s` : plural(value, noun);
}

/** What needs a decision, or is wrong. */
interface Notice {
  readonly state: 'warn' | 'bad';
  /** The problem, in one sentence. */
  readonly title: string;
  /** The meaning of the problem. */
  readonly text?: string;
  /** The way to a decision, or to more. */
  readonly link?: readonly [href: string, words: string];
}

function heldNotices({ listed, more }: Overview['held']): Notice[] {
  const notices = listed.map(({ run, removals, reason }): Notice => {
    const why = reason === null ? '' : `It was held back because ${clipped(reason)}. `;
    const title = `Run ${run} would remove ${counted(removals, 'product')}.`;
    const text = `${why}Nothing is removed before you decide.`;
    return { state: 'bad', title, text, link: [`/runs/${run}`, 'Look at them and decide'] };
  });
  const title = `${plural(more, 'more run')} ${more === 1 ? 'waits' : 'wait'} for a decision about removals.`;
  return more > 0 ? [...notices, { state: 'bad', title, link: ['/runs', 'Show all runs'] }] : notices;
}

function sinkNotices({ troubled, moreTroubled: more }: Overview['sinks']): Notice[] {
  const notices = troubled.map(({ name, row, held, error, parked }): Notice => {
    const link = [sinkPath(name), 'Look at it and decide'] as const;
    const state = row?.state ?? 'running';
    if (state === 'running' || state === 'paused') {
      const text = `${counted(parked, 'event')} ${parked === 1 ? 'is' : 'are'} parked.`;
      return { state: 'warn', title: `The sink ${name} refused changes.`, text, link };
    }
    const why = held?.reason ?? error;
    const text = why === null ? '' : sentence(why);
    return { state: 'bad', title: `The sink ${name} is ${state}: it receives nothing.`, text, link };
  });
  const title = `${plural(more, 'more sink')} ${more === 1 ? 'needs' : 'need'} a decision.`;
  return more > 0 ? [...notices, { state: 'bad', title, link: ['/sinks', 'Show all sinks'] }] : notices;
}

function* runNotices({ failed, open, last, retry, daemon }: Overview): Iterable<Notice> {
  if (failed > 0 && last !== null) {
    const again = daemon && retry !== null ? ` It is tried again at ${time(retry.at)}.` : '';
    yield {
      state: failed > 1 ? 'bad' : 'warn',
      title: failed > 1 ? `The last ${count(failed)} runs failed.` : 'The last run failed.',
      text: `${sentence(last.error ?? 'the reason was not recorded')}${again}`,
      link: [`/runs/${last.id}`, `Look at run ${last.id}`],
    };
  }
  if (open > 1) {
    const title = `The last ${count(open)} full runs could not prove that they saw every product.`;
    yield { state: 'warn', title, text: 'Removals wait until a run can.', link: ['/runs', 'See why'] };
  }
}

/** What does not deliver comes first. */
function* troubleOf(overview: Overview, channels: readonly ChannelSeen[]): Iterable<Notice> {
  const { pause, daemon, hasRelay, freshness, sinks, undelivered, others } = overview;
  if (!daemon && freshness !== 'empty') {
    const text = 'Nothing is read or delivered by itself. Start it with: npx catchword daemon';
    yield { state: 'warn', title: 'No daemon is running.', text };
  } else if (sinks.count > 0 && !hasRelay) {
    const text = 'A relay with their settings must run: npx catchword relay';
    yield { state: 'bad', title: 'Nothing delivers to the sinks.', text };
  }
  for (const { title, advice } of undelivered) yield { state: 'warn', title: `${title}.`, text: advice };
  yield* runNotices(overview);
  if (pause !== null) {
    const title = `The service asked for no request before ${time(pause.until)}.`;
    yield { state: 'warn', title, text: 'catchword waits. If this happens often, lower CATCHWORD_RATE_LIMIT.' };
  }
  for (const { topic, title, advice } of others) {
    const link = ['#start', 'Start a load'] as const;
    const start = topic === 'stale' && { text: `${advice}.`, link };
    yield { state: 'warn', title: `${title}.`, text: advice, ...start };
  }
  for (const text of channels.flatMap((channel) => channelTrouble(channel) ?? [])) {
    const link = ['#channels', 'Show the channels'] as const;
    yield { state: 'warn', title: `${text}.`, link };
  }
  for (const text of overview.settings) yield { state: 'warn', title: sentence(text) };
}

function decisionsOf({ held, sinks }: Overview): Notice[] {
  const found = [...heldNotices(held), ...sinkNotices(sinks)];
  const link = ['/actions#several', 'Decide about several at once'] as const;
  const isMany = held.listed.length + sinks.troubled.filter(({ state }) => state === 'held').length > 1;
  return isMany ? [...found, { state: 'warn', title: 'More than one approval is waited for.', link }] : found;
}

/** Lists what only a person can decide. */
export function Attention({ overview }: { readonly overview: Overview }) {
  return <Notices of={decisionsOf(overview)} none="Nothing needs a decision." />;
}

/** Lists what is not as it should be. */
export function Trouble({
  overview,
  channels,
}: {
  readonly overview: Overview;
  readonly channels: readonly ChannelSeen[];
}) {
  const what = decisionsOf(overview).length === 0 ? 'Nothing' : 'Nothing else';
  return (
    <>
      <Notices of={[...troubleOf(overview, channels)]} none={`${what} is known to be wrong.`} />
      <p>
        <a href="/problems">Problems of the last 90 days, and the messages about them</a>
      </p>
    </>
  );
}

function Notices({ of: notices, none }: { readonly of: readonly Notice[]; readonly none: string }) {
  if (notices.length === 0) return <p class="good">{none}</p>;
  return (
    <ul class="notes">
      {notices.map(({ state, title, text = '', link }) => (
        <li class={`note ${state}`}>
          <strong>{title}</strong> {text} {link && <a href={link[0]}>{link[1]}</a>}
        </li>
      ))}
    </ul>
  );
}
