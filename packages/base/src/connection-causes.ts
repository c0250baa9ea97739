/** What the code of a failed connection may mean: the two likeliest causes. The first row that fits counts. */
const CAUSES: readonly (readonly [RegExp, string])[] = [
  [/^(ENOTFOUND|EAI_)/, 'Look for a typing error in {setting}; or this machine does not reach its DNS server.'],
  [/^ECONNREFUSED/, 'Nothing listens there: {setting} may name another port, or the program there may not run.'],
  [
    /^(ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT)/,
    'No way leads there: a firewall may block it, or {setting} may name another host. HTTPS_PROXY names a proxy.',
  ],
  [
    /^(ECONNRESET|EPIPE|UND_ERR_SOCKET)/,
    'The other side, or a firewall or proxy before it, closed the connection; or {setting} says http for a port of https.',
  ],
  [
    /^(ERR_SSL|EPROTO)/,
    'The port may not speak TLS, so check https in {setting}; or it demands another version, or a certificate of this side.',
  ],
  [/HEADERS_OVERFLOW/, 'Its headers exceed 16 kB: too many cookies, for example.'],
  [/^HPE_|HTTP/, 'Another kind of server may listen there, such as one of TLS or SOCKS: check {setting}.'],
  [
    /^E[MN]FILE/,
    'This machine allows no more open files or connections: raise the limit (ulimit -n), or end programs.',
  ],
];

/** The likeliest causes of a failed connection by its code; `{setting}` names its address. */
export function causesOf(code: string): string {
  return CAUSES.find(([codes]) => codes.test(code))?.[1] ?? 'Check {setting} and the network; the service may be down.';
}
