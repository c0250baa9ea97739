import type { IncomingHttpHeaders } from 'node:http';
import type { Operation } from './operation.ts';
import { type Answer, refusalAnswer } from './response.ts';

const NAMED = 'application/json';
const STATUS = { accept: 406, 'content-type': 415 } as const;
const SPELT = { accept: 'Accept', 'content-type': 'Content-Type' } as const;

/** The media types of a header; each with whether it is wanted, which `q=0` says it is not. */
function typesOf(value = ''): ReadonlyMap<string, boolean> {
  return new Map(
    value.split(',').map((range) => {
      const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
      return [type, !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter))];
    }),
  );
}

/** Of the ranges that JSON is in, the narrowest counts. */
function takesJson(accept: string | undefined): boolean {
  const types = typesOf(accept);
  return types.get(NAMED) ?? types.get('application/*') ?? types.get('*/*') ?? false;
}

/**
 * What is said to a caller who leaves out a header that the interface names, besides those of section 5, or sends it
 * with a value that JSON is not in. Services are not known to refuse such requests, so it is asked of those alone who
 * want to know.
 */
export function headerRefusal(headers: IncomingHttpHeaders, { names, format }: Operation): Answer | null {
  if (names === undefined) return null;
  const fits = names === 'accept' ? takesJson(headers.accept) : typesOf(headers['content-type']).has(NAMED);
  if (fits) return null;
  return refusalAnswer(format, STATUS[names], `${SPELT[names]}: ${NAMED} is needed`);
}
