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

/** A certificate, and the PEM file of the private authority that signed it. */
export interface SignedCertificate extends Certificate {
  readonly ca: string;
}

/** Makes a private authority, and a certificate of it for `host`. */
export async function makeSigned(directory: string, host = 'IP:127.0.0.1'): Promise<SignedCertificate> {
  const file = (name: string): string => join(directory, `${name}.pem`);
  const [ca, cert, key] = [file('authority'), file('signed'), file('signed-key')];
  const made = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'];
  const openssl = (...args: string[]) => promisify(execFile)('openssl', [...made, ...args]);
  const signing = ['-CA', ca, '-CAkey', file('authority-key')];
  await openssl('-keyout', file('authority-key'), '-out', ca, '-subj', '/CN=catchword tests');
  const names = ['-addext', `subjectAltName=${host}`, '-addext', 'basicConstraints=CA:FALSE'];
  await openssl('-keyout', key, '-out', cert, '-subj', '/CN=server', ...names, ...signing);
  return { ca, cert, key };
}
