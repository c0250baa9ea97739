import { readFileSync } from 'node:fs';
import { request } from 'undici';
import type { Sandbox } from '../../src/sandbox/server.ts';
import { readXml, type XmlElement } from '../../src/xml/read.ts';
import { CREDENTIALS } from './client.ts';

const [KEY, TOKEN] = Object.keys(CREDENTIALS) as [string, string];

/** Headers of a caller; without a token where it is null. */
export function callerHeaders(token: string | null = 'sandboxtoken', key = 'SANDBOXKEY'): Record<string, string> {
  return { [KEY]: key, ...(token !== null && { [TOKEN]: token }) };
}

export interface Exchange {
  readonly status: number;
  readonly contentType: string;
  readonly text: string;
}

/** One request with a body or without. */
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

/** A control operation that has to succeed. */
export async function control(sandbox: Sandbox, path: string, body: object): Promise<void> {
  const { status, text } = await exchange(sandbox, `POST /_sandbox/${path}`, JSON.stringify(body), {});
  if (status !== 200) throw new Error(`${path}: ${status} ${text}`);
}

/** The root of an answer. */
export function rootOf({ text }: Exchange): XmlElement {
  const [root] = readXml(text);
  if (root === undefined) throw new Error('there is no root');
  return root;
}

/** The custom code of an answer's error, and its status; null for an answer that is no error. */
export function errorOf(answer: Exchange): readonly [number, string] | null {
  const root = rootOf(answer);
  return root.name === 'error' ? [answer.status, root.attributes.get('code') ?? ''] : null;
}

/** Each credential as its reference, each error as its code. */
export function outcomes(answer: Exchange): string[] {
  return rootOf(answer).children.map(
    ({ name, attributes }) => attributes.get(name === 'error' ? 'code' : 'reference') ?? '',
  );
}

/** A file written by hand from the interface, to the byte. */
export function golden(name: string): string {
  return readFileSync(new URL(`../golden/${name}.xml`, import.meta.url), 'utf8');
}
