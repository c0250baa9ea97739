import type { Reason } from '@catchword/catalog/reasons';
import type { Run } from '@catchword/catalog/run-types';
import { adviceFor, reasonText } from '../../report/reason-text.ts';
import { openWords, sealedWords } from '../../report/run-words.ts';
import { count, plural } from '../../report/text.ts';
import { ActionForm } from './action-form.tsx';
import { Mark } from './runs-page.tsx';
import { capitalized, Shown } from './untrusted-text.tsx';

/** Advises what to do about a reason, with a link to the section of that kind. */
function Advice({ reason, state }: { readonly reason: Reason; readonly state: Run['state'] }) {
  const { code } = reason;
  if (code === 'rejected' || (code === 'held' && state === 'held')) return <a href={`#${code}`}>{adviceFor(reason)}</a>;
  return <span class="soft">{code !== 'held' && adviceFor(reason)}</span>;
}

function Reasons({ run }: { readonly run: Run }) {
  return (
    <ul>
      {run.reasons.map((reason) => (
        <li>
          <Shown text={capitalized(reasonText(reason))} most={1_000} />. <Advice reason={reason} state={run.state} />
        </li>
      ))}
    </ul>
  );
}

function Evidence({ run }: { readonly run: Run }) {
  const { evidence } = run;
  if (evidence === null) return null;
  const { seen, requests, deltas, lookups, numItems } = evidence;
  const read = [`It saw ${plural(seen, 'product')} in ${plural(requests, 'request')}`];
  const meanwhile = run.kind === 'full' ? deltas : deltas - 1;
  if (meanwhile > 0) read.push(`read what changed meanwhile${meanwhile === 1 ? '' : ` (${count(meanwhile)} times)`}`);
  if (lookups > 0) read.push(`looked up ${plural(lookups, 'product')} one by one`);
  const total = `The source counted ${count(numItems)} when its list was read`;
  const later = seen > numItems && meanwhile > 0 ? '; products were added meanwhile' : '';
  return <p>{`${read.join(', ')}.${numItems === 0 || numItems === seen ? '' : ` ${total}${later}.`}`}</p>;
}

/** Says what a run has proven, why, what follows, and what to do. */
export function Proof({ run }: { readonly run: Run }) {
  if (run.finishedAt === null) return <p>It is decided when everything is read, and then stands here.</p>;
  if (run.evidence === null && (run.state === 'failed' || run.state === 'cancelled')) {
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
      <p>{(isSealed ? sealedWords(run) : openWords(run)).join(' ')}</p>
      {run.reasons.length > 0 && <Reasons run={run} />}
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
