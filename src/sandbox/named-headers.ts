import type { IncomingHttpHeaders } from 'node:http';
import { type Answer, refusalAnswer } from './answer.ts';
import type { Operation } from './operation.ts';

const NAMED = 'application/json';
const STATUS = { accept: 406, 'content-type': 415 } as const;
const SPELT = { accept: 'Accept', 'content-type': 'Content-Type' } as const;

function types(value: string | undefined): string[] {
  return (value ?? '').split(',').map((type) => type.replace(/;.*/s, '').trim().toLowerCase());
}

/**
 * What is said to a caller who leaves out a header that the interface names, besides those of section 5. Services are not
 * known to refuse such requests, so it is asked of those alone who want to know.
 */
export function headerRefusal(headers: IncomingHttpHeaders, { names, format }: Operation): Answer | null {
  if (names === undefined || types(headers[names]).includes(NAMED)) return null;
  return refusalAnswer(format, STATUS[names], `${SPELT[names]}: ${NAMED} is needed`);
}
