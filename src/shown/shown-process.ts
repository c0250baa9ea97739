import { iso } from '@catchword/base/iso-time';
import * as z from 'zod';
import { type ProcessSeen, seenHolder, serversOf } from '../report/status-report.ts';
import { thisProcess } from '../store/schema/lease.ts';
import type { Store } from '../store/store.ts';
import { COUNT, type Row, rowsOf, schemaOf, TIME } from './shown-row.ts';

// biome-ignore format: a row is a line.
export const PROCESS = [
  { key: 'pid', label: 'Process', list: 'column', schema: COUNT, about: 'Its process id.', value: ({ pid }) => pid, text: ({ pid }) => `${pid}` },
  { key: 'host', label: 'Machine', list: 'column', schema: z.string(), about: 'Its machine.', value: ({ host }) => host },
  { key: 'roles', label: 'Does', list: 'column', schema: z.array(z.string()).readonly(), about: 'What it does: `daemon`, `run 12`, `sinks`, `http`, `fetcher`.', value: ({ roles }) => roles, text: ({ roles }) => roles.join(', ') },
  { key: 'since', label: 'Since', list: 'column', schema: TIME.nullable(), about: 'Since when it does the first of these; null: not known.', value: ({ since }) => iso(since), text: ({ since }) => since === null ? null : { at: since } },
  { key: 'other_settings', label: 'Started with other settings', list: 'long', schema: z.array(z.string()).readonly(), about: 'Settings that it was not started with as they are now in its `.env`.', value: (of) => of.other_settings, text: (of) => of.other_settings.join(', ') || null, tone: () => 'warn' },
] as const satisfies readonly Row<ProcessSeen>[];

export const PROCESS_SCHEMA = schemaOf('WorkingProcess', 'A process, and all that it does.', PROCESS);

/** What is known of the process that holds a lease. */
export const HOLDER = rowsOf(PROCESS, 'pid', 'host', 'since', 'other_settings');

/** The fetchers of a catalog, as Redis knows their connections. */
export interface FetcherList {
  /** Where Redis is, without credentials. */
  readonly redis: string;
  /** Why it does not say; null if it does. */
  readonly problem: string | null;
  readonly fetchers: readonly ProcessSeen[];
}

/** The processes that work on a mirror, and this one, which serves HTTP. @param startedAt when it began to */
export function seenProcesses(store: Store, nowMs: number, startedAt: number): ProcessSeen[] {
  const { daemon, relay } = serversOf(store, nowMs);
  const run = store.runs.unfinished();
  const { pid, host } = thisProcess();
  const known: Readonly<Record<string, ProcessSeen | null>> = {
    daemon,
    [run === undefined ? 'mirror' : `run ${run.id}`]: seenHolder(store.keeperLease.holder(nowMs)),
    sinks: relay,
    http: { pid, host, since: startedAt, other_settings: [], roles: [] },
  };
  const all = new Map<string, ProcessSeen>();
  for (const [role, process] of Object.entries(known)) {
    if (process === null) continue;
    const id = `${process.pid} ${process.host}`;
    const { roles, ...first } = all.get(id) ?? process;
    all.set(id, { ...first, roles: [...roles, role] });
  }
  return [...all.values()];
}
