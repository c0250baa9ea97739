import type { Run } from '../../catalog/run.ts';
import { adviceFor, openWords, sealedWords } from '../../report/run-words.ts';
import { count, plural } from '../../report/text.ts';
import { ActionForm } from './action-form.tsx';
import { Mark } from './runs.tsx';

function Words({ sentences }: { readonly sentences: readonly string[] }) {
  return <p>{sentences.join(' ')}</p>;
}

function Reasons({ reasons }: { readonly reasons: readonly string[] }) {
  return (
    <ul class="reasons">
      {reasons.map((reason) => (
        <li>
          {reason}. {adviceFor(reason) !== null && <span class="soft">{adviceFor(reason)}</span>}
        </li>
      ))}
    </ul>
  );
}

function Evidence({ run }: { readonly run: Run }) {
  const { evidence } = run;
  if (evidence === null) return null;
  const read = [`It saw ${plural(evidence.seen, 'product')} in ${plural(evidence.requests, 'request')}`];
  if (evidence.deltas > 0)
    read.push(`read what had changed ${evidence.deltas === 1 ? 'once' : `${count(evidence.deltas)} times`}`);
  if (evidence.lookups > 0) read.push(`looked up ${plural(evidence.lookups, 'product')} one by one`);
  const total = evidence.numItems > 0 ? ` The source says that it has ${count(evidence.numItems)}.` : '';
  return <p>{`${read.join(', ')}.${total}`}</p>;
}

/** What a run that has ended has proven, why, what follows, and what to do. */
export function Proof({ run }: { readonly run: Run }) {
  if (run.finishedAt === null) return <p>It is decided when everything is read, and then stands here.</p>;
  if (run.state === 'failed' || run.state === 'cancelled') {
    return <p>Nothing: it did not read everything. No product was removed because this run did not see it.</p>;
  }
  if (run.proof === null) {
    return <p>One response held everything that changed, so there was no seam at which a product could be missed.</p>;
  }
  const isSealed = run.proof === 'sealed';
  return (
    <>
      <p>
        <Mark word={isSealed ? 'sealed' : 'open'} tone={isSealed ? 'good' : 'warn'} />
      </p>
      <Words sentences={isSealed ? sealedWords(run) : openWords(run)} />
      {run.reasons.length > 0 && <Reasons reasons={run.reasons} />}
      <Evidence run={run} />
      {!isSealed && (
        <ActionForm
          action="start"
          target="full"
          label="Start a full load"
          explanation="It reads the whole catalog again. If the source is quieter now, it can prove that nothing is missing."
        />
      )}
    </>
  );
}
