import type { ListPicture } from '../../report/run-picture.ts';
import { count, plural } from '../../report/text.ts';

const NAMES: Record<ListPicture['kind'], string> = {
  list: 'The catalog',
  delta: 'What changed meanwhile',
  catchup: 'Earlier changes, because the source put its clock back',
  settle: 'What became visible late',
  repair: 'Repairs',
  lookup: 'Lookups',
};

function nameOf({ kind, pass }: ListPicture): string {
  if (pass === 0) return kind === 'list' ? 'The catalog' : 'What changed';
  return kind === 'list' ? 'The catalog, read again' : NAMES[kind];
}

/** The letters of the picture (report/list-watch.ts) in words, for the legend; `some`: how many there are. */
function legendOf({ windows, joints, preview }: ListPicture) {
  const known = preview ? ' so far' : '';
  return [
    { key: 'unread', some: windows['.'], words: 'not read yet' },
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
  const seams = joints.j + joints.r;
  const parts = [`${count(read)} of ${plural(planned, 'window')} read`];
  if (planned > 1) parts.push(`${count(seams)} of ${plural(planned - 1 - joints[' '], 'seam')} closed`);
  if (joints.o > 0) parts.push(`${count(joints.o)} open`);
  if (repairs > 0) parts.push(`${plural(repairs, 'window')} read again as repairs`);
  if (windows.x > 0) parts.push(`${plural(windows.x, 'window')} with rejected items`);
  if (windows.d > 0) parts.push(`${plural(windows.d, 'window')} in doubt`);
  if (overlap === 0) parts.push('plain pages, which do not overlap');
  return `${parts.join(', ')}.`;
}

function List({ picture, isSealed }: { readonly picture: ListPicture; readonly isSealed: boolean }) {
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
      data-sealed={isSealed ? '' : undefined}
      data-label={`${nameOf(picture)}: ${sentence}`}
    >
      <figcaption>
        <strong>{nameOf(picture)}.</strong> {sentence}
        {picture.reversed && ' Read from its end to its start.'}
      </figcaption>
      <div id={`drawn-${pass}`} data-drawn="" />
      <ul class="legend">
        {legendOf(picture).map(({ key, some, words }) => (
          <li class={key}>{`${count(some)} ${words}`}</li>
        ))}
      </ul>
    </figure>
  );
}

interface PictureProps {
  readonly pictures: readonly ListPicture[];
  /** Of a run that has ended with this proof. */
  readonly isSealed: boolean;
  /** Whether everything that was read is in the picture. */
  readonly isComplete: boolean;
}

/** All windows of the lists that a run reads. The script draws them; the captions and the legend say the same. */
export function Picture({ pictures, isSealed, isComplete }: PictureProps) {
  const shown = pictures.filter(({ read }) => read > 0);
  const isPreview = shown.some(({ preview }) => preview);
  return (
    <>
      <p>
        Each square is a window: one request for a part of the list. Neighbours overlap, and where they hold the same
        products, the seam between them closes. A list whose seams are all closed has no hole.
      </p>
      {shown.length === 0 && <p>Nothing is read yet. The first answer tells how long the list is.</p>}
      {shown.map((picture) => (
        <List picture={picture} isSealed={isSealed} />
      ))}
      {isPreview && (
        <p class="soft">
          This is a preview, from what each window and its neighbours hold. What the run has proven is decided at its
          end.
          {!isComplete && ' Some windows that were read are not compared yet.'}
        </p>
      )}
    </>
  );
}
