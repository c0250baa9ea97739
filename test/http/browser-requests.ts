import { expect } from 'vitest';
import type { serve } from './place.ts';
import { get } from './reader.ts';

/* Requests as a browser sends them, to a server with a token. */

export const token = 'right-and-secret';
/** What a browser accepts. */
export const HTML = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };
export const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

export type Web = Pick<Awaited<ReturnType<typeof serve>>['web'], 'url'>;

/** Posts a form as a browser at the page does, unless `headers` say otherwise. */
export function post(
  web: Web,
  path: string,
  fields: Record<string, string>,
  headers: Record<string, string> = { origin: web.url },
) {
  const body = new URLSearchParams(fields).toString();
  return get(`${web.url}${path}`, { method: 'POST', headers: { ...HTML, ...FORM, ...headers }, body });
}

/** Signs in. @returns the cookie as the browser sends it back */
export async function signIn(web: Web, fields: Record<string, string> = {}): Promise<string> {
  const { status, headers } = await post(web, '/login', { token, ...fields });
  expect(status).toBe(303);
  const [cookie = ''] = headers['set-cookie'] ?? [];
  return cookie.split(';')[0] ?? '';
}

export function codeOf(text: string): string {
  return (JSON.parse(text) as { error: { code: string } }).error.code;
}
