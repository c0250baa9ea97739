import { type Asked, golden, type Reply, TOKEN } from './connection.ts';

/** The token after a reset. */
export const FRESH = 'freshtokenthatmustnotshow';
/** The verified user after a reset. */
export const VERIFIED = verified(FRESH);
/** How the service rejects the old token. */
export const STALE: Reply = { status: 401, body: '<error code="601" message="no longer valid"/>' };

export function verified(token: string): string {
  return `<credentials><credential reference="me" guid="G" access-token="${token}" email=""/></credentials>`;
}

/** A service that verifies the user with `before`, and rejects every token until a reset. */
export function service({ stale = STALE, before = verified(TOKEN), reset = '' as Reply | string } = {}) {
  let token: string | undefined;
  return (asked: Asked): Reply | string => {
    if (asked.url === '/v3/users/reset_access.xml') {
      token = FRESH;
      return reset;
    }
    if (asked.url === '/v3/credentials.xml') return token === undefined ? before : verified(token);
    return asked.headers['x-token'] === token ? golden('licenses-none.xml') : stale;
  };
}
