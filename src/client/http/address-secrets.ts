/** Characters. A shorter text may be an ordinary word. */
const MIN_SECRET = 6;
/** A word that a service may use in a message, such as `original`. */
const WORD = /^[A-Za-z]?[a-z]{0,15}$/;
const SECRET_NAME = /key|pass|secret|sig|token|auth|credential/i;

/** The secrets in one address, encoded and decoded: its password, and parameters such as a signature. */
function secretsIn(address: string): string[] {
  if (!URL.canParse(address)) return WORD.test(address) ? [] : [address];
  const { href, username, password, search, searchParams } = new URL(address);
  const values = [...searchParams].filter(([name, value]) => SECRET_NAME.test(name) || !WORD.test(value));
  const decoded = new URLSearchParams(`=${password.replaceAll('+', '%2B')}`).get('') ?? '';
  const query = WORD.test(search.slice(1)) ? [] : [search.slice(1)];
  const parameters = values.flatMap(([, value]) => [value, encodeURIComponent(value)]);
  return [address, href, `${username}:${password}`, password, decoded, ...query, ...parameters];
}

/** Secrets in addresses of files and callbacks: errors must not repeat them. */
export function secretsInAddresses(body: unknown): string[] {
  const fields = typeof body === 'object' && body !== null ? Object.entries(body) : [];
  const addresses = fields.filter(([field, value]) => /url$/i.test(field) && typeof value === 'string');
  return addresses.flatMap(([, value]) => secretsIn(String(value))).filter((secret) => secret.length >= MIN_SECRET);
}
