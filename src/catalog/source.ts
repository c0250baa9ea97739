/** What a mirror is a mirror of. */
export interface SourceIdentity {
  /** As `sourceAddress` writes it. */
  readonly address: string;
  /** As `selectionText` writes it. */
  readonly selection: string;
}

/** The settings that select what the catalog shows. */
export interface Selection {
  readonly includeDetails: readonly string[];
  readonly currency: readonly string[];
}

/**
 * The address of a service in one form: scheme and host in lower case, without default port, trailing slashes,
 * credentials, query and fragment.
 * @param baseUrl an http or https address
 */
export function sourceAddress(baseUrl: string): string {
  const { protocol, host, pathname } = new URL(baseUrl);
  return `${protocol}//${host}${pathname.replace(/\/+$/, '')}`;
}

function sorted(values: readonly string[]): string[] {
  return [...new Set(values)].sort();
}

/** JSON that is the same for selections that show the same, in whatever order they are set. */
export function selectionText({ includeDetails, currency }: Selection): string {
  return JSON.stringify({ includeDetails: sorted(includeDetails), currency: sorted(currency) });
}

export function sourceIdentity({ baseUrl, ...selection }: Selection & { readonly baseUrl: string }): SourceIdentity {
  return { address: sourceAddress(baseUrl), selection: selectionText(selection) };
}
