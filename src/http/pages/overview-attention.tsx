import type { ComponentChildren } from 'preact';
import { COUNTED, type Overview } from '../../report/overview-report.ts';
import { count, plural, time } from '../../report/text.ts';
import { clipped, sentence } from './phrases.ts';
import { sinkPath } from './sinks-page.tsx';

/** `1 removal`, or `more than 1,000 removals` where the counting stopped. */
function counted(value: number, noun: string): string {
  return value > COUNTED ? `more than ${count(COUNTED)} ${noun}s` : plural(value, noun);
}

function Notice({ state, children }: { readonly state: 'warn' | 'bad'; readonly children: ComponentChildren }) {
  return <li class={`note ${state}`}>{children}</li>;
}

function heldNotices({ listed, more }: Overview['held']) {
  return [
    ...listed.map(({ run, removals, reason }) => (
      <Notice state="bad">
        <strong>{`Run ${run} would remove ${counted(removals, 'product')}.`}</strong>
        {reason !== null && ` It was held back because ${clipped(reason)}.`} Nothing is removed before you decide.{' '}
        <a href={`/runs/${run}`}>Look at them and decide</a>
      </Notice>
    )),
    ...(more > 0
      ? [
          <Notice state="bad">
            {`${plural(more, 'more run')} ${more === 1 ? 'waits' : 'wait'} for a decision about removals. `}
            <a href="/runs">Show all runs</a>
          </Notice>,
        ]
      : []),
  ];
}

function sinkNotices({ troubled, moreTroubled }: Overview['sinks']) {
  return [
    ...troubled.map(({ name, state, error, parked }) => {
      const link = <a href={sinkPath(name)}>Look at it and decide</a>;
      if (state === 'running' || state === 'paused') {
        return (
          <Notice state="warn">
            <strong>{`The sink ${name} refused changes.`}</strong>
            {` ${counted(parked, 'event')} ${parked === 1 ? 'is' : 'are'} parked. `}
            {link}
          </Notice>
        );
      }
      return (
        <Notice state="bad">
          <strong>{`The sink ${name} is ${state}: it receives nothing.`}</strong>
          {error !== null && ` ${sentence(error)}`} {link}
        </Notice>
      );
    }),
    ...(moreTroubled > 0
      ? [
          <Notice state="bad">
            {`${plural(moreTroubled, 'more sink')} ${moreTroubled === 1 ? 'needs' : 'need'} a decision. `}
            <a href="/sinks">Show all sinks</a>
          </Notice>,
        ]
      : []),
  ];
}

function runNotices({ failed, open, last, retry, daemon }: Overview) {
  const found: ComponentChildren[] = [];
  if (failed > 0 && last !== null) {
    const again = daemon && retry !== null ? ` It is tried again at ${time(retry.at)}.` : '';
    found.push(
      <Notice state={failed > 1 ? 'bad' : 'warn'}>
        <strong>{failed > 1 ? `The last ${count(failed)} runs failed.` : 'The last run failed.'}</strong>
        {` ${sentence(last.error ?? 'the reason was not recorded')}${again} `}
        <a href={`/runs/${last.id}`}>{`Look at run ${last.id}`}</a>
      </Notice>,
    );
  }
  if (open > 1) {
    found.push(
      <Notice state="warn">
        <strong>{`The last ${count(open)} full runs could not prove that they saw every product.`}</strong> Removals
        wait until a run can. <a href="/runs">See why</a>
      </Notice>,
    );
  }
  return found;
}

/** What needs a decision, or may soon need one; the most urgent first. */
export function Attention({ overview }: { readonly overview: Overview }) {
  const { pausedUntil, daemon, freshness, held, sinks, others } = overview;
  const notices = [...heldNotices(held), ...sinkNotices(sinks), ...runNotices(overview)];
  if (pausedUntil !== null) {
    notices.push(
      <Notice state="warn">
        <strong>{`The service asked for no request before ${time(pausedUntil)}.`}</strong> catchword waits. If this
        happens often, lower CATCHWORD_RATE_LIMIT.
      </Notice>,
    );
  }
  for (const { title, advice } of others) {
    notices.push(
      <Notice state="warn">
        <strong>{`${title}.`}</strong> {advice}
      </Notice>,
    );
  }
  if (!daemon && freshness !== 'empty') {
    notices.push(
      <Notice state="warn">
        <strong>No daemon is running.</strong> Nothing is read or delivered by itself. Start it with: npx catchword
        daemon
      </Notice>,
    );
  }
  if (notices.length === 0) return <p class="good">Nothing needs a decision.</p>;
  return <ul class="notes">{notices}</ul>;
}
