import { isIPv6 } from 'node:net';
import { distrustOf } from './certificate.ts';
import { causesOf } from './connection-causes.ts';
import { CatchwordError } from './errors.ts';
import { isLoopback } from './loopback.ts';
import { decoded } from './percent-decode.ts';

/*
 * Which proxy a request goes through. undici's `EnvHttpProxyAgent` follows the same rules, but it reads the environment of
 * the process, cannot say which proxy it chose, and sends loopback addresses to it too.
 */

/** Rows of option-table.ts. The addresses may contain credentials. */
export interface ProxySettings {
  readonly httpsProxy?: string | undefined;
  readonly httpProxy?: string | undefined;
  readonly noProxy?: string | undefined;
}

export interface HttpProxy {
  /** Contains credentials: do not log it. */
  readonly url: URL;
  /** Its host and port, for people. */
  readonly name: string;
  /** The variable that names it. */
  readonly setting: string;
  /** Sent with each request to the proxy; contains credentials. */
  readonly headers: Readonly<Record<string, string>>;
  /** Texts to redact: a proxy may repeat what it got. */
  readonly secrets: readonly string[];
}

/** Host and port of an address, the default port too: `books.example:443`. */
export function authorityOf({ host, port, protocol }: Pick<URL, 'host' | 'port' | 'protocol'>): string {
  return port ? host : `${host}:${protocol === 'https:' ? 443 : 80}`;
}

/** Whether an entry of NO_PROXY is about a target: its host or a domain of it, perhaps with a port, or all. */
function isAbout(entry: string, target: URL): boolean {
  if (entry === '*') return true;
  const host = isIPv6(entry) ? new URL(`http://[${entry}]`).hostname : entry.replace(/^\*?\./, '');
  const [own, authority] = [target.hostname, authorityOf(target)];
  return host !== '' && [own, authority].some((one) => one === host || one.endsWith(`.${host}`));
}

/** HTTPS_PROXY, or HTTP_PROXY; null if NO_PROXY excepts the target, or for loopback, which never needs one. */
export function proxyFor(target: URL, { httpsProxy, httpProxy, noProxy = '' }: ProxySettings): HttpProxy | null {
  const isHttps = target.protocol === 'https:' && httpsProxy !== undefined;
  const address = isHttps ? httpsProxy : httpProxy;
  const excepted = noProxy.toLowerCase().split(/[\s,]+/);
  if (address === undefined || isLoopback(target.hostname)) return null;
  if (excepted.some((entry) => isAbout(entry, target))) return null;
  const url = new URL(address);
  const [user, password] = [decoded(url.username), decoded(url.password)];
  const basic = Buffer.from(`${user}:${password}`).toString('base64');
  const hasUser = url.username !== '' || url.password !== '';
  return {
    url,
    name: authorityOf(url),
    setting: isHttps ? 'HTTPS_PROXY' : 'HTTP_PROXY',
    headers: hasUser ? { 'proxy-authorization': `Basic ${basic}` } : {},
    secrets: hasUser ? [password, basic] : [],
  };
}

/** The error of a proxy that does not connect. @param answer its status, or the code of a socket */
export function proxyError({ name, setting }: HttpProxy, target: string, answer: number | string): CatchwordError {
  const isStatus = typeof answer === 'number';
  const distrust = distrustOf(answer);
  const reason = distrust === null ? ` or broke off (${answer})` : `: ${distrust.problem}`;
  const what = isStatus ? `answered ${answer} when asked for ${target}` : `cannot be reached${reason}`;
  const user = 'Set {setting} to http://USER:PASSWORD@HOST:PORT, with a user that the proxy accepts.';
  const passing = 'The proxy may not reach this host, or be in trouble itself.';
  const refused = 'Check {setting}, and whether the proxy allows this host.';
  const causes = isStatus ? (answer >= 500 ? passing : refused) : causesOf(answer);
  return new CatchwordError('SOURCE_UNAVAILABLE', `the proxy ${name} ${what}`, {
    hint: distrust?.hint ?? (answer === 407 ? user : `${causes} NO_PROXY names hosts that need no proxy.`),
    setting,
    retryable: isStatus ? answer >= 500 : distrust === null,
  });
}
