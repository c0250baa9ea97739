import { type Comparison, comparisonLines, sampleLines } from '../../report/sink-preview.ts';
import { count } from '../../report/text.ts';
import type { Section, View, Visit } from './page-view.ts';
import { Shown } from './untrusted-text.tsx';

/** Compares at `?preview=1`. @throws CatchwordError USAGE */
export const findPreview: NonNullable<View['find']> = async ({ store, steps }, { params, query }) => {
  const { name = '' } = params;
  if (!query.has('preview') || store.sinks.get(name) === undefined) return null;
  const given = (part: string): string | undefined => query.get(part)?.trim() || undefined;
  return <Found {...(await steps.preview(name, { where: given('where'), fields: given('fields') }))} />;
};

function Found({ comparison, judged }: { readonly comparison: Comparison; readonly judged: number }) {
  return (
    <>
      <p>{`Judged ${count(judged)} products. Nothing was sent.`}</p>
      <ul>
        {comparisonLines(comparison).map((line) => (
          <li>
            <Shown text={line} most={2_000} />
          </li>
        ))}
      </ul>
      {comparison.samples.map(sampleLines).map(({ title, now, next }) => (
        <>
          <p>
            <Shown text={title} most={300} />
          </p>
          <ul>
            <li>
              now: <Shown text={now} most={1_000} />
            </li>
            <li>
              then: <Shown text={next} most={1_000} />
            </li>
          </ul>
        </>
      ))}
    </>
  );
}

/** A form that shows what another view would change, for at most some seconds. @param now the view that the sink has */
export function previewSection(
  { query, found, problem }: Visit,
  now: { readonly where: string | null; readonly fields: string | null },
): Section {
  const content = (
    <>
      <form method="get" action="#preview">
        <p>What would the store get with another filter, or other fields? Nothing is sent.</p>
        <input type="hidden" name="preview" value="1" />
        {(['where', 'fields'] as const).map((part) => (
          <p>
            <label for={part}>{part === 'where' ? 'Products, where' : 'Fields'}</label>{' '}
            <textarea id={part} name={part} rows={3} cols={60}>
              {query.get(part) ?? now[part] ?? ''}
            </textarea>
          </p>
        ))}
        <button type="submit">Preview</button>
      </form>
      {problem !== undefined && (
        <p class="warn" role="alert">
          <Shown text={problem} most={1_000} />
        </p>
      )}
      {found}
    </>
  );
  return { id: 'preview', title: 'Another view', content };
}
