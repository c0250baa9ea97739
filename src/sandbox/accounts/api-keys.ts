import type { SandboxOptions } from '../options.ts';

/** A valid key without a catalog. */
export const KEY_WITHOUT_CATALOG = 'NOCATALOG';

/** The API keys that the service accepts. The main key can be renewed; its data stays. */
export interface ApiKeys {
  /** The main key that callers must send now. */
  main(): string;
  /** Returns the key that owns the caller's data, or null if the key is not valid. */
  ownerOf(apiKey: string): string | null;
  /** Replaces the main key. @returns whether the new key was free */
  renew(apiKey: string): boolean;
}

export function createApiKeys({ apiKey, otherApiKey }: Pick<SandboxOptions, 'apiKey' | 'otherApiKey'>): ApiKeys {
  const others = [otherApiKey, KEY_WITHOUT_CATALOG];
  let main = apiKey;
  return {
    main: () => main,
    ownerOf: (key) => (key === main ? apiKey : others.includes(key) ? key : null),
    renew: (key) => {
      if (others.includes(key)) return false;
      main = key;
      return true;
    },
  };
}
