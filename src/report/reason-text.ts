import type { CountReason, HeldReason, HoldReason, Reason } from '@catchword/catalog/reasons';

/* The sentences of reasons, and what an operator can do about each: docs/page-drift.md explains them. */

type Of<Code extends Reason['code']> = Extract<Reason, { readonly code: Code }>;

interface Words<Code extends Reason['code']> {
  /** As metrics name it. */
  readonly kind: string;
  readonly text: (reason: Of<Code>) => string;
  readonly advice: string;
}

/** @returns ` of a delta`, or nothing for the list */
const where = ({ list }: { readonly list: 'list' | 'delta' }): string => (list === 'list' ? '' : ' of a delta');

function seamsText(reason: Of<'seams' | 'volatile'>, why: string): string {
  return `${reason.open} of ${reason.seams} seams${where(reason)} did not close: ${why}`;
}

function countText({ wanted, read, of }: CountReason): string {
  const has = of === 'total' ? `source says that it has ${wanted} products` : `list has ${wanted} items`;
  return `the ${has}, and ${read} were read`;
}

function productsText({ vbid, more }: Of<'two-places' | 'two-contents'>): string {
  return `${vbid ?? 'a removed product'} ${more === 0 ? 'is' : `and ${more} more are`}`;
}

function unreadableText({ from, to, said }: Of<'unreadable'>): string {
  const after = to === null ? ' and everything after it' : '';
  const offsets = to === null || to === from ? `offset ${from}${after}` : `offsets ${from} to ${to}`;
  return `${offsets} cannot be read: ${said}`;
}

/** Says why a run holds removals. */
export function holdText(why: HoldReason): string {
  if (why.code === 'empty') return 'the source lists no product at all';
  if (why.code === 'count') return countText(why);
  const { removals, limit, announced } = why;
  const more = announced === 0 ? '' : `; the source announced ${announced} more, ${removals + announced} in all`;
  return `${removals} removals are more than the limit of ${limit}${more}`;
}

function heldText({ why, verdict }: HeldReason): string {
  return `held${verdict === null ? '' : ` until ${verdict}`}: ${holdText(why)}`;
}

const SEAMS =
  'Read at a quieter time (CATCHWORD_FULL_CRON), or faster, if the source permits it (CATCHWORD_RATE_LIMIT).';
const TWICE =
  'Report it to the operator of the source. With CATCHWORD_LOOKUP_PATH, products that are gone are removed nevertheless.';
const TOTALS =
  'The source may be at fault: run npx catchword doctor. With CATCHWORD_LOOKUP_PATH, products that are gone are removed nevertheless.';
const UNTOLD =
  'Ask the operator of the source which changes its deltas show. If these fields never are, name them in CATCHWORD_UNTOLD_FIELDS.';

/** In the order in which metrics list their kinds. */
const WORDS: { readonly [Code in Reason['code']]: Words<Code> } = {
  'plain-pages': {
    kind: 'settings',
    text: () => 'CATCHWORD_SEAM is off: plain pages do not overlap, and a product may slip between them',
    advice: 'Remove CATCHWORD_SEAM from the settings, so that neighbouring pages overlap.',
  },
  'page-size': {
    kind: 'page size',
    text: ({ perPage }) =>
      `the source answers ${perPage} products a page whatever it is asked for, so pages cannot overlap (try CATCHWORD_PER_PAGE=${perPage})`,
    advice: 'Set CATCHWORD_PER_PAGE to the size that the source answers.',
  },
  'no-order': {
    kind: 'order',
    text: (reason) => `the source lists products in no stable order${where(reason)}`,
    advice: 'Ask the operator of the source to list products in a stable order, such as by key.',
  },
  volatile: {
    kind: 'volatile',
    text: (reason) => seamsText(reason, 'each product that two windows share has another content in the second one'),
    advice:
      'If members change with each answer although nothing was modified, such as signed links, name them in CATCHWORD_VOLATILE_FIELDS.',
  },
  seams: {
    kind: 'seams',
    text: (reason) => seamsText(reason, 'the windows there share no product that stayed as it was'),
    advice: SEAMS,
  },
  'plain-delta': {
    kind: 'seams',
    text: () => 'a delta of plain pages changed while it was read: the next one asks from the same time again',
    advice: SEAMS,
  },
  restless: {
    kind: 'seams',
    text: () => 'the source changed faster than its deltas could be read',
    advice: SEAMS,
  },
  'whole-delta': {
    kind: 'whole delta',
    text: () =>
      'a delta shows nearly every product: either a job changed them, or the source ignores the time from which deltas ask',
    advice: 'If no job changed them, report it: run npx catchword doctor.',
  },
  untold: {
    kind: 'untold',
    text: ({ untold, changed, fields }) =>
      `deltas did not tell ${untold} of ${changed} changes that the list shows (${fields.join(', ')})`,
    advice: UNTOLD,
  },
  uncontrolled: {
    kind: 'untold',
    text: ({ run }) => `deltas did not tell all changes to run ${run}, and this run could not control them`,
    advice: UNTOLD,
  },
  unreadable: {
    kind: 'unreadable',
    text: unreadableText,
    advice: 'Report it to the operator of the source; the products there stay as they were.',
  },
  cached: {
    kind: 'cache',
    text: ({ said }) => said,
    advice: 'Ask the operator of the source to exclude the product list from its cache.',
  },
  'two-places': {
    kind: 'listed twice',
    text: (reason) => `${productsText(reason)} at two distant places: the list has it twice, or has no stable order`,
    advice: TWICE,
  },
  'two-contents': {
    kind: 'listed twice',
    text: (reason) =>
      `${productsText(reason)} at two places with two contents: the first one counts, and it is not proven that the list has both`,
    advice: TWICE,
  },
  contradiction: {
    kind: 'totals',
    text: ({ said }) => `the source contradicts itself: ${said}`,
    advice: TOTALS,
  },
  count: { kind: 'totals', text: countText, advice: TOTALS },
  partial: {
    kind: 'partial',
    text: ({ leftOut }) =>
      `deltas show products without ${leftOut.join(', ') || 'some of their members'}: these stay as they were`,
    advice:
      'Ask the operator of the source for whole products in deltas. Until then, such changes arrive with the next full load.',
  },
  rejected: {
    kind: 'rejected',
    text: () => 'items were rejected, and each may be a product that was not seen',
    advice: 'See the rejected items below, and report them to the operator of the source.',
  },
  unsettled: {
    kind: 'late',
    text: () => 'its deltas could not be read late enough to show every change: nothing is concluded from them',
    advice: 'Start another full load when the source is less busy.',
  },
  held: { kind: 'held', text: heldText, advice: 'Decide about the removals on this page.' },
};

/** The kinds of reasons why a run is open. */
export const REASON_KINDS: readonly string[] = [...new Set(Object.values(WORDS).map(({ kind }) => kind))];

// TypeScript does not see that a reason and the words of its code belong together.
const wordsOf = ({ code }: Reason) => WORDS[code] as Words<Reason['code']>;

/** Says in a sentence, without its full stop, why a run is open, or what it holds. */
export function reasonText(reason: Reason): string {
  return wordsOf(reason).text(reason);
}

/** Names the kind of a reason as metrics do. */
export function reasonKind(reason: Reason): string {
  return wordsOf(reason).kind;
}

/** Advises what to do about a reason. */
export function adviceFor(reason: Reason): string {
  return wordsOf(reason).advice;
}
