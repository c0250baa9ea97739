import { z } from 'zod';
import { type Control, taking } from './control/control.ts';
import { errorAnswer } from './http/response.ts';
import { KEY_WITHOUT_CATALOG, type SandboxOptions } from './options.ts';

/** The API keys that the service accepts. The main key can be renewed; what it owns stays. */
export interface Keys {
  /** The main key as callers must send it now. */
  main(): string;
  /** @returns the key under which a caller's holdings are kept, null where the key is not valid */
  ownerOf(apiKey: string): string | null;
  /** `POST /_sandbox/key`: replaces the main key, and revokes the one before. */
  readonly renew: Control;
}

const renewal = z.strictObject({
  api_key: z.string().regex(/^[\x21-\x7e]{1,255}$/, '1 to 255 printable characters without spaces are needed'),
});

export function createKeys({ apiKey, otherApiKey }: Pick<SandboxOptions, 'apiKey' | 'otherApiKey'>): Keys {
  let main = apiKey;
  return {
    main: () => main,
    ownerOf: (given) => {
      if (given === main) return apiKey;
      return given === otherApiKey || given === KEY_WITHOUT_CATALOG ? given : null;
    },
    renew: taking(renewal, ({ api_key: renewed }) => {
      if (renewed === otherApiKey || renewed === KEY_WITHOUT_CATALOG) {
        return errorAnswer(422, 'api_key: is already in use');
      }
      main = renewed;
      return { status: 200, body: JSON.stringify({ api_key: renewed }) };
    }),
  };
}
