/** Characters. A shorter text may be an ordinary word. */
const MIN_SECRET = 6;
/** A word that a service may use in a message, such as `original`. */
const WORD = /^[A-Za-z]?[a-z]{0,15}$/;
const SECRET_NAME = /key|pass|secret|sig|token|auth|credential/i;

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Names and values, encoded and decoded, and the whole query. */
function parametersOf({ search, searchParams }: URL): [string, string][] {
  const query = search.slice(1);
  const pairs = query.split('&').map((pair): [string, string] => {
    const [name = ''] = pair.split('=', 1);
    return [name, pair.slice(name.length + 1)];
  });
  return [...searchParams, ...pairs, ['', query]];
}

/** Secrets in addresses of files and callbacks, such as a password or a signature, encoded and decoded. */
export function secretsInAddresses(body: unknown): string[] {
  if (typeof body !== 'object' || body === null) return [];
  const secrets = Object.entries(body).flatMap(([field, value]: [string, unknown]) => {
    if (!/url$/i.test(field) || typeof value !== 'string') return [];
    if (!URL.canParse(value)) return WORD.test(value) ? [] : [value];
    const url = new URL(value);
    const { href, username, password } = url;
    const parameters = parametersOf(url).filter(([name, one]) => SECRET_NAME.test(name) || !WORD.test(one));
    return [value, href, `${username}:${password}`, password, decoded(password), ...parameters.map(([, one]) => one)];
  });
  return secrets.filter((secret) => secret.length >= MIN_SECRET);
}
