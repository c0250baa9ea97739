import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** Paths of PEM files. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** Makes a certificate for 127.0.0.1 that is its own authority, so nothing trusts it by itself. */
export async function makeCertificate(directory: string): Promise<Certificate> {
  const [key, cert] = [join(directory, 'key.pem'), join(directory, 'cert.pem')];
  const names = ['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1'];
  const made = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2', '-keyout', key];
  await promisify(execFile)('openssl', ['req', '-x509', ...made, '-out', cert, ...names]);
  return { cert, key };
}
