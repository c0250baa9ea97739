import { printableLines } from '@catchword/base/printable';
import { count } from '../../report/text.ts';

/** Characters of a body that are shown at once, and that can be opened. */
const SHOWN = 200;
export const OPENED = 4_000;

/** The beginning of a text from outside, and what can be opened of it. @param rest says where all of it is */
export function Body({
  body,
  length,
  rest,
}: {
  readonly body: string;
  readonly length: number;
  readonly rest: string;
}) {
  const text = <code class="body">{printableLines(body.slice(0, SHOWN))}</code>;
  if (length <= SHOWN) return text;
  return (
    <>
      {text}
      <details>
        <summary>{`more of ${count(length)} characters`}</summary>
        <pre class="body">{printableLines(body)}</pre>
        {length > body.length && `The first ${count(body.length)} of ${count(length)} characters. ${rest}`}
      </details>
    </>
  );
}
