import { statusOf } from '../../report/status.ts';
import { duration, plural } from '../../report/text.ts';
import type { View } from './view.ts';

/** How fresh the mirror is, and what needs a decision. */
export const overview: View = {
  path: '/',
  show: ({ store, clock, plans }) => {
    const nowMs = clock.now();
    const status = statusOf(store, nowMs, plans(nowMs));
    const headline = (
      <p>
        {plural(status.products, 'product')},{' '}
        {status.age_seconds === null ? 'not complete yet' : `as of ${duration(status.age_seconds * 1000)} ago`}
      </p>
    );
    return { title: 'Overview', sections: [{ id: 'headline', live: true, content: headline }] };
  },
};
