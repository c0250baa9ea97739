import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { nkeys } from '@nats-io/transport-node';

type KeyPair = ReturnType<typeof nkeys.createUser>;

const base64 = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** Signs what NATS believes of `subject`, as `nsc` does. */
function jwt(issuer: KeyPair, subject: KeyPair, name: string, claims: object): string {
  const fixed = {
    jti: randomUUID(),
    iat: 1_700_000_000,
    iss: issuer.getPublicKey(),
    sub: subject.getPublicKey(),
    name,
  };
  const text = `${base64({ typ: 'JWT', alg: 'ed25519-nkey' })}.${base64({ ...fixed, nats: { ...claims, version: 2 } })}`;
  return `${text}.${Buffer.from(issuer.sign(Buffer.from(text))).toString('base64url')}`;
}

const ANY = { subs: -1, data: -1, payload: -1 };
const ACCOUNT = { ...ANY, imports: -1, exports: -1, wildcards: true, conn: -1, leaf: -1 };
const STORAGE = { mem_storage: -1, disk_storage: -1, streams: -1, consumer: -1 };

/** Makes an operator, whose server knows its users by files of credentials, and such a file in `directory`. */
export function natsOperator(directory: string) {
  const [operator, system, shop, user] = [
    nkeys.createOperator(),
    nkeys.createAccount(),
    nkeys.createAccount(),
    nkeys.createUser(),
  ];
  const accounts = [
    [system, jwt(operator, system, 'SYS', { type: 'account', limits: ACCOUNT })],
    [shop, jwt(operator, shop, 'SHOP', { type: 'account', limits: { ...ACCOUNT, ...STORAGE } })],
  ] as const;
  const creds = join(directory, 'shop.creds');
  const seed = Buffer.from(user.getSeed()).toString();
  const token = jwt(shop, user, 'catchword', { type: 'user', pub: {}, sub: {}, ...ANY });
  writeFileSync(
    creds,
    `-----BEGIN NATS USER JWT-----\n${token}\n------END NATS USER JWT------\n\n` +
      `-----BEGIN USER NKEY SEED-----\n${seed}\n------END USER NKEY SEED------\n`,
  );
  const preload = accounts.map(([account, text]) => `${account.getPublicKey()}: ${text}`).join('\n');
  return {
    creds,
    seed,
    config: `operator: ${jwt(operator, operator, 'O', { type: 'operator' })}
      system_account: ${system.getPublicKey()}
      resolver: MEMORY
      resolver_preload: { ${preload} }`,
  };
}
