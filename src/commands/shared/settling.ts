import type { Run } from '../../catalog/run.ts';
import { moment, plural } from './format.ts';

/** What a run that settles waits for, and until when; null where it does not settle. */
export function settlingText({ settlesAt, missing }: Pick<Run, 'settlesAt' | 'missing'>): string | null {
  if (settlesAt === null) return null;
  const until = moment(settlesAt);
  const time = until.slice(11);
  if (missing === 0) return `settling until ${until} UTC: a last delta at ${time} decides whether a product was missed`;
  const unseen = `${plural(missing, 'product')} ${missing === 1 ? 'was' : 'were'} not seen`;
  return `settling until ${until} UTC: ${unseen}; a last delta at ${time} decides`;
}
