import type { SandboxOptions } from '../options.ts';

/**
 * A valid key without a catalog.
 * @rule 4.3-8, 5-6
 */
export const KEY_WITHOUT_CATALOG = 'NOCATALOG';

/** The API keys that the service accepts. The main key can be renewed; its data stays. */
export function createApiKeys({ apiKey, otherApiKey }: Pick<SandboxOptions, 'apiKey' | 'otherApiKey'>) {
  const others = [otherApiKey, KEY_WITHOUT_CATALOG];
  let main = apiKey;
  return {
    /** The main key that callers must send now. */
    main: () => main,
    /** Returns the key that owns the caller's data, or null if the key is not valid. */
    ownerOf: (key: string): string | null => (key === main ? apiKey : others.includes(key) ? key : null),
    /** Replaces the main key. @returns whether the new key was free */
    renew: (key: string): boolean => {
      if (others.includes(key)) return false;
      main = key;
      return true;
    },
  };
}

export type ApiKeys = ReturnType<typeof createApiKeys>;
