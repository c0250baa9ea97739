import { seenSinks } from '../../report/sink-report.ts';
import { otherSettingsTexts, serversOf } from '../../report/status-report.ts';
import { byUrgency, NO_SINKS, SINK } from '../../shown/shown-sink.ts';
import type { Store } from '../../store/store.ts';
import { ShownTable } from './page-shown.tsx';
import type { View } from './page-view.ts';
import { sentence } from './untrusted-text.tsx';

/** Says which settings are not in use. */
function OtherSettings({ store, nowMs }: { readonly store: Store; readonly nowMs: number }) {
  return otherSettingsTexts(serversOf(store, nowMs)).map((text) => <p class="note warn">{sentence(text)}</p>);
}

/** Says that nothing is delivered, if that is so. */
export function NoRelay({ store, nowMs }: { readonly store: Store; readonly nowMs: number }) {
  if (store.relayLease.holder(nowMs) !== null) return null;
  return (
    <p class="note warn">
      No daemon or relay is running, so no sink gets anything. Start <code>npx catchword daemon</code>.
    </p>
  );
}

/** Every sink that the mirror knows, the most urgent first. */
export const sinks: View = {
  path: '/sinks',
  show: ({ store, clock }) => {
    const nowMs = clock.now();
    const known = seenSinks(store, nowMs).sort(byUrgency);
    const table = (
      <>
        <NoRelay store={store} nowMs={nowMs} />
        <ShownTable
          caption="The stores that the change log feeds"
          rows={SINK}
          all={known}
          idOf={({ name }) => `sink-${name}`}
        />
      </>
    );
    const content = (
      <>
        <OtherSettings store={store} nowMs={nowMs} />
        {known.length === 0 ? <p>{NO_SINKS}</p> : table}
      </>
    );
    return { title: 'Sinks', sections: [{ id: 'sinks', live: true, content }] };
  },
};
