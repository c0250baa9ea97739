/** Retrying does not help against an invalid certificate. */
const INVALID = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ERR_TLS/;

/** Whether a connection failed because the other side's certificate is not trusted, or is not for its host. */
export function isDistrusted(systemCode: string): boolean {
  return INVALID.test(systemCode);
}

/** Hint about such a certificate; `{setting}` is the setting with the address. */
export const DISTRUSTED_HINT =
  'Check {setting}: its certificate is not trusted. NODE_EXTRA_CA_CERTS names a file of further authorities.';
