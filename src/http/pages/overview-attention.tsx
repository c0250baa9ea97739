import type { ComponentChildren } from 'preact';
import { COUNTED, type Overview } from '../../report/overview-report.ts';
import { count, plural, time } from '../../report/text.ts';
import { sinkPath } from './sinks-page.tsx';
import { clipped, sentence } from './untrusted-text.tsx';

/** `1 removal`, or `more than 1,000 removals` where the counting stopped. */
function counted(value: number, noun: string): string {
  return value > COUNTED ? `more than ${count(COUNTED)} ${noun}s` : plural(value, noun);
}

interface NoticeProps {
  readonly state: 'warn' | 'bad';
  /** The problem, in one sentence. */
  readonly title: string;
  /** The meaning of the problem, and the way to a decision. */
  readonly children: ComponentChildren;
}

function Notice({ state, title, children }: NoticeProps) {
  return (
    <li class={`note ${state}`}>
      <strong>{title}</strong> {children}
    </li>
  );
}

/** `97 more runs wait for a decision`, with a link to all of them. */
function More({ words, href, name }: { readonly words: string; readonly href: string; readonly name: string }) {
  return (
    <li class="note bad">
      {`${words} `}
      <a href={href}>{name}</a>
    </li>
  );
}

function heldNotices({ listed, more }: Overview['held']) {
  const notices = listed.map(({ run, removals, reason }) => (
    <Notice state="bad" title={`Run ${run} would remove ${counted(removals, 'product')}.`}>
      {reason !== null && `It was held back because ${clipped(reason)}. `}Nothing is removed before you decide.{' '}
      <a href={`/runs/${run}`}>Look at them and decide</a>
    </Notice>
  ));
  const words = `${plural(more, 'more run')} ${more === 1 ? 'waits' : 'wait'} for a decision about removals.`;
  return more > 0 ? [...notices, <More words={words} href="/runs" name="Show all runs" />] : notices;
}

function sinkNotices({ troubled, moreTroubled: more }: Overview['sinks']) {
  const notices = troubled.map(({ name, state, error, parked }) => {
    const isHalted = state !== 'running' && state !== 'paused';
    const title = isHalted ? `The sink ${name} is ${state}: it receives nothing.` : `The sink ${name} refused changes.`;
    const events = `${counted(parked, 'event')} ${parked === 1 ? 'is' : 'are'} parked.`;
    return (
      <Notice state={isHalted ? 'bad' : 'warn'} title={title}>
        {isHalted ? error !== null && `${sentence(error)} ` : `${events} `}
        <a href={sinkPath(name)}>Look at it and decide</a>
      </Notice>
    );
  });
  const words = `${plural(more, 'more sink')} ${more === 1 ? 'needs' : 'need'} a decision.`;
  return more > 0 ? [...notices, <More words={words} href="/sinks" name="Show all sinks" />] : notices;
}

function runNotices({ failed, open, last, retry, daemon }: Overview) {
  const again = daemon && retry !== null ? ` It is tried again at ${time(retry.at)}.` : '';
  const failures = failed > 1 ? `The last ${count(failed)} runs failed.` : 'The last run failed.';
  const opened = `The last ${count(open)} full runs could not prove that they saw every product.`;
  return [
    failed > 0 && last !== null && (
      <Notice state={failed > 1 ? 'bad' : 'warn'} title={failures}>
        {`${sentence(last.error ?? 'the reason was not recorded')}${again} `}
        <a href={`/runs/${last.id}`}>{`Look at run ${last.id}`}</a>
      </Notice>
    ),
    open > 1 && (
      <Notice state="warn" title={opened}>
        Removals wait until a run can. <a href="/runs">See why</a>
      </Notice>
    ),
  ];
}

/** Lists what needs a decision, or may soon need one; the most urgent first. */
export function Attention({ overview }: { readonly overview: Overview }) {
  const { pause, daemon, freshness, held, sinks, others } = overview;
  const found = [
    ...heldNotices(held),
    ...sinkNotices(sinks),
    ...runNotices(overview),
    pause !== null && (
      <Notice state="warn" title={`The service asked for no request before ${time(pause.until)}.`}>
        catchword waits. If this happens often, lower CATCHWORD_RATE_LIMIT.
      </Notice>
    ),
    ...others.map(({ title, advice }) => (
      <Notice state="warn" title={`${title}.`}>
        {advice}
      </Notice>
    )),
    !daemon && freshness !== 'empty' && (
      <Notice state="warn" title="No daemon is running.">
        Nothing is read or delivered by itself. Start it with: npx catchword daemon
      </Notice>
    ),
  ];
  const notices = found.filter((notice) => notice !== false);
  if (notices.length === 0) return <p class="good">Nothing needs a decision.</p>;
  return <ul class="notes">{notices}</ul>;
}
