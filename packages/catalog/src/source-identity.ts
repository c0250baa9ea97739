import { createHash } from 'node:crypto';

/** The settings that select what the source returns for each product. */
export interface Selection {
  readonly includeDetails: readonly string[];
  readonly currency: readonly string[];
}

/** Normalizes an http or https address: no default port, trailing slash, credentials, query or fragment. */
export function sourceAddress(baseUrl: string): string {
  const { protocol, host, pathname } = new URL(baseUrl);
  return `${protocol}//${host}${pathname.replace(/\/+$/, '')}`;
}

function sorted(values: readonly string[]): string[] {
  return [...new Set(values)].sort();
}

/** A selection as JSON; equal for equal selections, whatever their order. */
export function selectionText({ includeDetails, currency }: Selection): string {
  return JSON.stringify({ includeDetails: sorted(includeDetails), currency: sorted(currency) });
}

/** Everything that decides which products a source returns. */
interface Access extends Selection {
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly lookupPath?: string | undefined;
}

/**
 * A short id of what a process reads, equal in every process that reads the same, however its address is written. Keepers
 * get pages only from fetchers with their id: an account may see other products than the next one.
 */
export function sourceId({ baseUrl, apiKey, lookupPath, ...selection }: Access): string {
  const access = JSON.stringify([sourceAddress(baseUrl), selectionText(selection), lookupPath ?? null, apiKey]);
  return createHash('sha256').update(access).digest('hex').slice(0, 12);
}

/** Identifies the catalog that a mirror copies. */
export function sourceIdentity({ baseUrl, ...selection }: Selection & { readonly baseUrl: string }) {
  return { address: sourceAddress(baseUrl), selection: selectionText(selection) };
}

export type SourceIdentity = Readonly<ReturnType<typeof sourceIdentity>>;
