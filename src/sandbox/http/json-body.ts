import { isUtf8 } from 'node:buffer';

/** For safety: what is written as JSON again level by level must not exhaust the stack. */
const MAX_DEPTH = 64;

/** A body as parsed, or what is wrong with it (422). */
export type JsonBody = { readonly json: unknown } | { readonly wrong: readonly string[] };

type Container = Readonly<Record<string, unknown>> | readonly unknown[];

function isContainer(value: unknown): value is Container {
  return typeof value === 'object' && value !== null;
}

function isArray(container: Container): container is readonly unknown[] {
  return Array.isArray(container);
}

/** How many values there are in it, itself included; Infinity for more than `limit`, NaN for too many levels. */
function countOf(value: unknown, limit: number): number {
  let count = 1;
  let level = [value].filter(isContainer);
  // The body itself is a level.
  for (let depth = 1; level.length > 0; depth++) {
    if (depth === MAX_DEPTH) return Number.NaN;
    const next: Container[] = [];
    for (const container of level) {
      const inner = isArray(container) ? container : Object.values(container);
      count += inner.length;
      if (count > limit) return Number.POSITIVE_INFINITY;
      for (const one of inner) if (isContainer(one)) next.push(one);
    }
    level = next;
  }
  return count;
}

/** Names the member with which an object gets too deep or too much; null where it does not. */
function excessOf(json: Readonly<Record<string, unknown>>, maxValues: number): string | null {
  let left = maxValues;
  for (const name of Object.keys(json)) {
    const count = countOf(json[name], left);
    if (Number.isNaN(count)) return `${name}: at most ${MAX_DEPTH} levels are taken`;
    left -= count;
    if (left < 0) return `${name}: at most ${maxValues} values are taken in a body`;
  }
  return null;
}

/**
 * The gate in front of the schemas that judge a body: each value that is wrong costs them far more than it does to
 * count it.
 * @param maxValues elements and members, of the body and all within it
 */
export function readJsonBody(body: Buffer, maxValues: number): JsonBody {
  // Else bytes that are no text would be kept as U+FFFD.
  if (!isUtf8(body)) return { wrong: ['body: no UTF-8'] };
  // As XML has it: a byte order mark is no part of the text.
  const text = new TextDecoder().decode(body);
  if (text.trim() === '') return { wrong: ['body: is empty'] };
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return { wrong: ['body: no JSON'] };
  }
  // Any schema refuses an array at once.
  const excess = isContainer(json) && !isArray(json) ? excessOf(json, maxValues) : null;
  return excess === null ? { json } : { wrong: [excess] };
}
