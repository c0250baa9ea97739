import { CHANNEL, seenChannels } from '../../shown/shown-channel.ts';
import { PROBLEM, seenProblems } from '../../shown/shown-problem.ts';
import { PROBLEM_FILTERS } from '../list-filters.ts';
import { askedFor, List, pageOf } from './page-list.tsx';
import { ShownTable } from './page-shown.tsx';
import type { PageParts, Section, View } from './page-view.ts';

/** Problems on one page. */
const LISTED = 50;

/** The channels of the settings; nothing if there are none. */
export function channelSections({ store, channels: configured }: Pick<PageParts, 'store' | 'channels'>): Section[] {
  const channels = seenChannels(store, configured);
  if (channels.length === 0) return [];
  const content = <ShownTable caption="Channels that notifications go to" rows={CHANNEL} all={channels} />;
  return [{ id: 'channels', title: 'Channels', live: true, content }];
}

/** Problems that are open or over, and the messages about them. */
export const problems: View = {
  path: '/problems',
  show: ({ store, state, channels }, { query }) => {
    const asked = askedFor(query, PROBLEM_FILTERS);
    const found = pageOf(store.episodes.list(LISTED + 1, asked.only), LISTED, ({ id }) => id);
    const shown = seenProblems(store, state(), found.shown);
    const content = (
      <List name="problems" path="/problems" filters={PROBLEM_FILTERS} asked={asked} next={found.next}>
        {shown.length === 0 ? (
          <p>No such problem. The daemon looks twice a minute, and notes what lasts; it is kept for 90 days.</p>
        ) : (
          <ShownTable
            caption="Problems, the newest first, and what each channel got"
            rows={PROBLEM}
            all={shown}
            isNamed={false}
          />
        )}
      </List>
    );
    const sections = [{ id: 'problems', live: asked.isNewest, content }, ...channelSections({ store, channels })];
    return { title: 'Problems', sections };
  },
};
