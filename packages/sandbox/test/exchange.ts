import type { Sandbox } from '@catchword/sandbox/sandbox-server';
import { CREDENTIALS } from '@catchword/testing/sandbox-for';
import { readXml, type XmlElement } from '@catchword/xml/read';
import { request } from 'undici';

const [KEY, TOKEN] = Object.keys(CREDENTIALS) as [string, string];

/** Headers of a caller. Null: without a token. */
export function callerHeaders(token: string | null = 'sandboxtoken', key = 'SANDBOXKEY'): Record<string, string> {
  return { [KEY]: key, ...(token !== null && { [TOKEN]: token }) };
}

export interface Exchange {
  readonly status: number;
  readonly contentType: string;
  readonly text: string;
}

/** Sends one request. */
export async function exchange(
  sandbox: Sandbox,
  operation: `${'GET' | 'POST' | 'PUT' | 'DELETE'} /${string}`,
  body: string | Buffer | null = null,
  headers: Record<string, string> = CREDENTIALS,
): Promise<Exchange> {
  const [method = 'GET', path = '/'] = operation.split(' ');
  const response = await request(sandbox.url + path, {
    method,
    body,
    headers: { 'content-type': 'application/xml; charset=utf-8', ...headers },
  });
  const contentType = String(response.headers['content-type']);
  return { status: response.statusCode, contentType, text: await response.body.text() };
}

/** Calls a control, and throws if it fails. */
export async function control(sandbox: Sandbox, path: string, body: object): Promise<void> {
  const { status, text } = await exchange(sandbox, `POST /_sandbox/${path}`, JSON.stringify(body), {});
  if (status !== 200) throw new Error(`${path}: ${status} ${text}`);
}

/** The root of a reply. */
export function rootOf({ text }: Exchange): XmlElement {
  const [root] = readXml(text);
  if (root === undefined) throw new Error('the root is missing');
  return root;
}

function textIn(answer: Exchange, name: string): string | undefined {
  return rootOf(answer).children.find((child) => child.name === name)?.text;
}

/** Status and custom code of an error. Null if the reply is not an error. */
export function errorOf(answer: Exchange): readonly [number, string] | null {
  return rootOf(answer).name === 'error-response' ? [answer.status, textIn(answer, 'error-code') ?? ''] : null;
}

/** Verifies `credential` elements with an API key alone, as the interface says. */
export function verify(sandbox: Sandbox, credentials: string, key?: string): Promise<Exchange> {
  const body = `<credentials>${credentials}</credentials>`;
  return exchange(sandbox, 'POST /v3/credentials.xml', body, callerHeaders(null, key));
}

/** The guid, token and email of a reference user. */
export async function attributesOf(sandbox: Sandbox, reference: string) {
  const [element] = rootOf(await verify(sandbox, `<credential reference="${reference}"/>`)).children;
  const value = (name: string) => element?.attributes.get(name) ?? '';
  return { guid: value('guid'), token: value('access-token'), email: value('email') };
}

/** Returns the reference of each credential, and the code of each error. */
export function outcomes(answer: Exchange): string[] {
  return rootOf(answer).children.map(
    ({ name, attributes }) => attributes.get(name === 'error' ? 'code' : 'reference') ?? '',
  );
}
