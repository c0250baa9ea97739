import type { AddressInfo } from 'node:net';
import { CatchwordError, messageOf, systemCodeOf } from '@catchword/base/errors';
import { isLoopback } from '@catchword/base/loopback';
import type { FastifyInstance } from 'fastify';

/** Fewest characters of a token that cannot be guessed. The right one passes however many wrong ones came before it. */
const SHORTEST_TOKEN = 16;

/** @throws CatchwordError CONFIG_INVALID if other machines could read the mirror without a token, or guess it */
export function checkExposure(host: string, token: string | undefined): void {
  if (isLoopback(host) || (token?.length ?? 0) >= SHORTEST_TOKEN) return;
  if (token !== undefined) {
    const message = `CATCHWORD_HTTP_TOKEN: other machines can reach ${host}, and it has fewer than ${SHORTEST_TOKEN} characters`;
    throw new CatchwordError('CONFIG_INVALID', message, { hint: 'Use a random one: openssl rand -hex 32.' });
  }
  throw new CatchwordError(
    'CONFIG_INVALID',
    `CATCHWORD_HTTP_HOST: other machines can reach ${host}, and CATCHWORD_HTTP_TOKEN is not set`,
    { hint: 'Set CATCHWORD_HTTP_TOKEN, or CATCHWORD_HTTP_HOST=127.0.0.1.' },
  );
}

type PortSetting = 'CATCHWORD_HTTP_PORT' | 'CATCHWORD_METRICS_PORT';

function listenError(setting: PortSetting, host: string, port: number, cause: unknown): CatchwordError {
  const code = systemCodeOf(cause);
  if (code !== 'EADDRINUSE' && code !== 'EACCES') {
    const hint = 'Use an address of this machine, such as 127.0.0.1.';
    const message = `CATCHWORD_HTTP_HOST: ${host} cannot be used: ${messageOf(cause)}`;
    return new CatchwordError('CONFIG_INVALID', message, { hint, cause });
  }
  const why = code === 'EACCES' ? 'this user may not listen on it' : 'another process listens on it';
  const hint = 'Choose another port, 0 for any free port, or off for none.';
  return new CatchwordError('CONFIG_INVALID', `${setting}: ${port} cannot be used: ${why}`, { hint, cause });
}

/**
 * @param port 0 for any free port
 * @returns the URL of the server
 * @throws CatchwordError CONFIG_INVALID naming the wrong setting
 */
export async function listen(
  app: FastifyInstance,
  host: string,
  port: number,
  setting: PortSetting = 'CATCHWORD_HTTP_PORT',
): Promise<string> {
  try {
    // For `localhost` fastify would open a second server at ::1, which it does not expose.
    await app.listen({ host: host.toLowerCase() === 'localhost' ? '127.0.0.1' : host, port });
  } catch (error) {
    throw listenError(setting, host, port, error);
  }
  const { address, family, port: taken } = app.server.address() as AddressInfo;
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${taken}`;
}
