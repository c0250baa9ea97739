import { READER } from './accounts/directory.ts';
import { SANDBOX_DEFAULTS, type SandboxOptions } from './options.ts';
import type { Sandbox } from './sandbox-server.ts';

/** The names that can be chosen, by the settings of catchword for them. */
const NAMES = {
  CATCHWORD_API_KEY_HEADER: 'apiKeyHeader',
  CATCHWORD_ACCESS_TOKEN_HEADER: 'accessTokenHeader',
  CATCHWORD_BOOKS_PATH: 'booksPath',
  CATCHWORD_PACKAGES_PATH: 'packagesPath',
} as const;
type Name = (typeof NAMES)[keyof typeof NAMES];

/** Everything that a person or a program needs to call the sandbox. */
export function introduction(
  sandbox: Sandbox,
  options: Pick<SandboxOptions, 'items' | 'users' | Name> & Partial<Pick<SandboxOptions, 'rateLimit'>>,
) {
  const { items, users, rateLimit, apiKeyHeader, accessTokenHeader } = options;
  const { otherApiKey } = SANDBOX_DEFAULTS;
  const { url, port } = sandbox;
  const apiKey = sandbox.apiKey();
  const { accessToken, otherAccessToken } = sandbox.readerTokens();
  const chosen = Object.entries(NAMES).filter(([, name]) => options[name] !== SANDBOX_DEFAULTS[name]);
  const environment = {
    CATCHWORD_BASE_URL: url,
    CATCHWORD_API_KEY: apiKey,
    CATCHWORD_ACCESS_TOKEN: accessToken,
    CATCHWORD_USER_REFERENCE: READER,
    // The sandbox shows every change at once, in lists and in deltas.
    CATCHWORD_DELTA_OVERLAP: '1s',
    CATCHWORD_RATE_LIMIT:
      rateLimit == null ? 'off' : `${rateLimit.maxRequests}/${rateLimit.windowMs === 1_000 ? 's' : 'min'}`,
    ...Object.fromEntries(chosen.map(([setting, name]) => [setting, options[name]])),
  };
  const key = `-H '${apiKeyHeader}: ${apiKey}'`;
  const both = `${key} -H '${accessTokenHeader}: ${accessToken}'`;
  const asset = JSON.stringify({ imprint_id: 1, title: 'Tides' });
  const examples = {
    catalog: `curl -s ${both} -H 'Content-Type: application/json' '${url}/v4/products?per_page=2'`,
    asset: `curl -s -X PUT ${key} -H 'Accept: application/json' -d '${asset}' '${url}/v4/assets/L-999-70031'`,
    licenses: `curl -s ${both} '${url}/v3/licenses.xml'`,
  };
  const other = { apiKey: otherApiKey, accessToken: otherAccessToken };
  const about = { url, port, apiKey, accessToken, reference: READER, other, items, users };
  return { ...about, environment, curl: examples.catalog, examples };
}

export function introductionText(about: ReturnType<typeof introduction>): string {
  const { url, items, environment, examples, apiKey, accessToken, reference, other, users } = about;
  const others = users === 0 ? '' : `, and user-0000001 to user-${String(users).padStart(7, '0')}`;
  const exports = Object.entries(environment).map(([name, value]) => `export ${name}=${value}`);
  return `The sandbox answers at ${url} with ${items.toLocaleString('en')} product${items === 1 ? '' : 's'}, until Ctrl-C.
API key ${apiKey}, access token ${accessToken}
API key ${other.apiKey}, access token ${other.accessToken}: another caller, who owns nothing yet
Users of the first key: ${reference}, who has that token${others}
Description: ${url}/openapi.json

${exports.join('\n')}

${Object.values(examples).join('\n')}
`;
}
