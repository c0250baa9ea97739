import { decoded } from '@catchword/base/percent-decode';

/** Characters. A shorter text may be an ordinary word. */
const MIN_SECRET = 6;
/** A word that a service may use in a message, such as `original`. */
const WORD = /^[A-Za-z]?[a-z]{0,15}$/;
const SECRET_NAME = /key|pass|secret|sig|token|auth|credential/i;

/** The parameters of a query as they are written. */
function writtenParameters(query: string): [string, string][] {
  return query.split('&').map((pair) => {
    const [name = ''] = pair.split('=', 1);
    return [name, pair.slice(name.length + 1)];
  });
}

/** The secrets in one address, encoded and decoded: its password, and parameters such as a signature. */
function secretsIn(address: string): string[] {
  if (!URL.canParse(address)) return WORD.test(address) ? [] : [address];
  const { href, username, password, search, searchParams } = new URL(address);
  const query = search.slice(1);
  const parameters = [...searchParams, ...writtenParameters(query), ['', query] as const]
    .filter(([name, value]) => SECRET_NAME.test(name) || !WORD.test(value))
    .flatMap(([, value]) => [value, encodeURIComponent(value)]);
  return [address, href, `${username}:${password}`, password, decoded(password), ...parameters];
}

/** Secrets in addresses of files and callbacks: errors must not repeat them. */
export function secretsInAddresses(body: unknown): string[] {
  const fields = typeof body === 'object' && body !== null ? Object.entries(body) : [];
  const addresses = fields.filter(([field, value]) => /url$/i.test(field) && typeof value === 'string');
  return addresses.flatMap(([, value]) => secretsIn(String(value))).filter((secret) => secret.length >= MIN_SECRET);
}
