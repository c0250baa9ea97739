import { iso, runJson } from '../catalog/run-json.ts';
import type { Store } from './store.ts';

/** Where the mirror stands, as `catchword status --json` prints it and `/api/status` answers it. */
export function statusOf(store: Store, nowMs: number) {
  const [last] = store.runs.list(1);
  const holder = store.lease.holder(nowMs);
  return {
    mirror: store.path,
    incarnation: store.incarnation,
    bytes: store.sizeBytes(),
    products: store.products.living(),
    last_seq: store.changes.lastSeq(),
    watermark: iso(store.watermark()),
    age_seconds: store.watermark() === null ? null : Math.round((nowMs - (store.watermark() ?? 0)) / 1000),
    blocked_until: store.blockedUntil() > nowMs ? iso(store.blockedUntil()) : null,
    running: holder === null ? null : { pid: holder.pid, host: holder.host },
    held: store.runs.held().map(({ id }) => id),
    last_run: last === undefined ? null : runJson(last),
  };
}
