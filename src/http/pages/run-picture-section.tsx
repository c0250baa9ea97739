import type { Run } from '@catchword/catalog/run-types';
import type { ListPicture } from '../../report/run-picture.ts';
import { count, plural } from '../../report/text.ts';

const NAMES: Partial<Record<ListPicture['kind'], string>> = {
  delta: 'What changed meanwhile',
  catchup: 'Earlier changes, because the source put its clock back',
  settle: 'What became visible late',
};

function nameOf({ kind, pass }: ListPicture): string {
  if (pass === 0) return kind === 'list' ? 'The catalog' : 'What changed';
  return NAMES[kind] ?? 'The catalog, read again';
}

/** The letters of the picture (report/run-watch.ts) in words, for the legend; `some`: how many there are. */
function legendOf({ windows, joints }: ListPicture, { evidence }: Run) {
  const known = evidence === null ? ' so far' : '';
  return [
    { key: 'unread', some: windows['.'], words: 'not read' },
    { key: 'read', some: windows.w + windows.a, words: 'read' },
    { key: 'again', some: windows.a, words: 'of them read again at a place that did not join' },
    { key: 'rejected', some: windows.x, words: 'with items that were rejected' },
    { key: 'doubt', some: windows.d, words: 'whose totals contradict their items' },
    { key: 'joined', some: joints.j, words: `${joints.j === 1 ? 'seam' : 'seams'} closed${known}` },
    { key: 'repaired', some: joints.r, words: `${joints.r === 1 ? 'seam' : 'seams'} closed by a repair` },
    { key: 'open', some: joints.o, words: `${joints.o === 1 ? 'seam' : 'seams'} open${known}` },
  ].filter(({ some }) => some > 0);
}

function sentenceOf(picture: ListPicture): string {
  const { planned, read, joints, windows, overlap, repairs } = picture;
  const closed = joints.j + joints.r;
  const seams = closed + joints.o + joints['.'];
  const parts = [`${count(read)} of ${plural(planned, 'window')} read`];
  if (seams > 0) parts.push(`${count(closed)} of ${plural(seams, 'seam')} closed`);
  if (joints.o > 0) parts.push(`${count(joints.o)} open`);
  if (repairs > 0) parts.push(`${plural(repairs, 'window')} read again as repairs`);
  if (windows.x > 0) parts.push(`${plural(windows.x, 'window')} with rejected items`);
  if (windows.d > 0) parts.push(`${plural(windows.d, 'window')} in doubt`);
  // Of a list that hardly changed, neighbours may share few products: none on average.
  if (overlap === 0 && closed === 0) parts.push('plain pages, which do not overlap');
  return `${parts.join(', ')}.`;
}

function List({ picture, run }: { readonly picture: ListPicture; readonly run: Run }) {
  const { pass, cells, seams, places, perCell, planned } = picture;
  const sentence = sentenceOf(picture);
  return (
    <figure
      class="windows"
      data-cells={cells}
      data-seams={seams}
      data-places={places}
      data-per-cell={perCell}
      data-windows={planned}
      data-sealed={run.proof === 'sealed' ? '' : undefined}
      data-label={`${nameOf(picture)}: ${sentence}`}
    >
      <figcaption>
        <strong>{nameOf(picture)}.</strong> {sentence}
        {picture.reversed && ' Read from its end to its start.'}
      </figcaption>
      <div id={`drawn-${pass}`} data-drawn="" />
      <ul class="legend">
        {legendOf(picture, run).map(({ key, some, words }) => (
          <li class={key}>{`${count(some)} ${words}`}</li>
        ))}
      </ul>
    </figure>
  );
}

function previewWords({ finishedAt }: Run): string {
  return finishedAt === null
    ? 'This is a preview. A seam seems closed if both neighbours hold a product, until the run judges it after a delta. What the run has proven is decided at its end.'
    : 'This run stopped before its seams could be proven: they are drawn as it judged them last, or from what neighbours hold.';
}

/** All windows of the lists that a run reads. The script draws them; the captions and the legend say the same. */
export function Picture({ pictures, run }: { readonly pictures: readonly ListPicture[]; readonly run: Run }) {
  return (
    <>
      <p>
        Each square is a window: one request for a part of the list. Neighbours overlap, and where they hold the same
        products, the seam between them closes. A list whose seams are all closed has no hole.
      </p>
      {pictures.map((picture) => (
        <List picture={picture} run={run} />
      ))}
      {run.evidence === null && <p class="soft">{previewWords(run)}</p>}
    </>
  );
}
