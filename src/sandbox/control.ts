import type { IncomingMessage } from 'node:http';
import { z } from 'zod';
import { CatchwordError, messageOf } from '../errors.ts';
import { type Answer, errorAnswer } from './answer.ts';
import type { Catalog } from './catalog.ts';
import { itemsFor, type Shelf } from './operations/products.ts';
import { readBody } from './read-body.ts';

const count = z.int().min(0).optional();
const mutation = z.strictObject({ create: count, update: count, remove: count, seed: z.int().optional() });

const MAX_BODY_BYTES = 64 * 1024;
/** Lines of truth written at once. */
const PIECE = 1000;

/** `POST /_sandbox/mutate` with `{"create":n,"update":n,"remove":n,"seed":s}`, each optional; answers the counts. */
export async function mutate(catalog: Catalog, request: IncomingMessage): Promise<Answer> {
  const body = await readBody(request, MAX_BODY_BYTES);
  if (body === null) return errorAnswer(413, `at most ${MAX_BODY_BYTES} bytes are taken`);
  try {
    return { status: 200, body: JSON.stringify(catalog.mutate(mutation.parse(JSON.parse(body.toString())))) };
  } catch (error) {
    if (error instanceof z.ZodError) return errorAnswer(422, ...z.prettifyError(error).split('\n'));
    if (error instanceof SyntaxError || error instanceof CatchwordError) return errorAnswer(422, messageOf(error));
    throw error;
  }
}

/** Does what the body, which is JSON, asks for. */
export async function control(act: (body: unknown) => Answer, request: IncomingMessage): Promise<Answer> {
  const body = await readBody(request, MAX_BODY_BYTES);
  if (body === null) return errorAnswer(413, `at most ${MAX_BODY_BYTES} bytes are taken`);
  let asked: unknown;
  try {
    asked = JSON.parse(body.toString());
  } catch (error) {
    return errorAnswer(422, messageOf(error));
  }
  return act(asked);
}

/**
 * `GET /_sandbox/truth`: the living products as of the request, in the order of the listing, as lines of JSON. Which
 * ones they are is noted at once (8 bytes each); their text is made as it is read.
 */
export function truth(shelf: Shelf, params: URLSearchParams): Iterable<string> | Answer {
  const render = itemsFor(shelf, params);
  if (typeof render !== 'function') return render;
  const { catalog } = shelf;
  const indices = new Uint32Array(catalog.living);
  const versions = new Uint32Array(catalog.living);
  let noted = 0;
  for (let offset = 0; noted < catalog.living; offset += PIECE) {
    catalog.list(null, offset, PIECE, (index, version, withdrawn) => {
      if (withdrawn) return;
      indices[noted] = index;
      versions[noted++] = version;
    });
  }
  return pieces(indices, versions, (index, version) => `${render(index, version, false)}\n`);
}

function* pieces(
  indices: Uint32Array,
  versions: Uint32Array,
  line: (index: number, version: number) => string,
): Iterable<string> {
  for (let start = 0; start < indices.length; start += PIECE) {
    let text = '';
    indices.subarray(start, start + PIECE).forEach((index, at) => {
      text += line(index, versions[start + at] ?? 0);
    });
    yield text;
  }
}
