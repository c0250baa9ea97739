import { systemCodeOf } from './errors.ts';

/** Codes of Node.js about the certificate of the other side. The codes ERR_SSL_… say what that side thinks of ours. */
const INVALID =
  /^(?!ERR_(OS)?SSL).*(CERT|SELF_SIGNED|UNABLE_TO_VERIFY|CRL|INVALID_CA|INVALID_PURPOSE|PATH_LENGTH|HOSTNAME_M)/;

const HINT =
  'A certificate must be valid now, for this host, and of a known authority. NODE_EXTRA_CA_CERTS names a file of further authorities; set it in the environment of the process, because .env is too late. For PostgreSQL and MySQL, the address may name one: sslrootcert=FILE, ssl-ca=FILE.';

/** No file of authorities helps against this. */
const OTHER_HOST =
  'The address may name another host than the certificate does; or a proxy or firewall on the way answers with its own.';

/** Says why a connection failed whose certificate is not trusted; null for another `failure`, an error or its code. */
export function distrustOf(failure: unknown) {
  const code = typeof failure === 'string' ? failure : (systemCodeOf(failure) ?? '');
  if (!INVALID.test(code)) return null;
  const problem = `its certificate is not trusted (${code})`;
  const hint = /ALTNAME_INVALID|HOSTNAME_M/.test(code) ? OTHER_HOST : HINT;
  return { problem, hint, text: `${problem}. ${hint}` };
}
