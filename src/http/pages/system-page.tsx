import { PROCESS, seenProcesses } from '../../shown/shown-process.ts';
import { SETTING } from '../../shown/shown-setting.ts';
import { ShownTable } from './page-shown.tsx';
import type { View } from './page-view.ts';
import { sentence } from './untrusted-text.tsx';

/** Which processes work on the mirror, and with which settings. */
export const system: View = {
  path: '/system',
  find: async ({ fetchers }) => {
    if (fetchers === undefined) return null;
    const { redis, problem, fetchers: found } = await fetchers();
    if (problem !== null)
      return <p class="note warn">{`Redis at ${redis} does not name its fetchers: ${sentence(problem)}`}</p>;
    if (found.length === 0) return <p class="note warn">{`No fetcher is connected to Redis at ${redis}.`}</p>;
    return <ShownTable caption={`Connected to Redis at ${redis}`} rows={PROCESS} all={found} />;
  },
  show: ({ store, clock, effective, startedAt, fetchers }, { found }) => {
    const processes = seenProcesses(store, clock.now(), startedAt);
    return {
      title: 'System',
      sections: [
        {
          id: 'processes',
          title: 'Processes',
          live: true,
          content: <ShownTable caption="Processes that work on this mirror" rows={PROCESS} all={processes} />,
        },
        ...(fetchers === undefined ? [] : [{ id: 'fetchers', title: 'Fetchers', content: found }]),
        {
          id: 'settings',
          title: 'Settings',
          content: (
            <ShownTable
              caption="The settings with which this process was started, without secrets"
              rows={SETTING}
              all={effective}
            />
          ),
        },
      ],
    };
  },
};
