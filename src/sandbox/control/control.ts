import type { IncomingMessage } from 'node:http';
import { z } from 'zod';
import { CatchwordError, messageOf } from '../../errors.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { readJsonBody } from '../http/json-body.ts';
import { type Answer, errorAnswer } from '../http/response.ts';
import { judge } from '../http/validate.ts';
import { itemsFor, type Shelf } from '../operations/products.ts';
import { readBody } from '../read-body.ts';

/** No controls and no halves of surrogates: they could not be written in XML. */
export const text = z.string().regex(/^[^\p{Cc}\p{Cs}\ufffe\uffff]*$/u, 'holds a character that XML cannot hold');
const count = z.int().min(0).optional();
const mutationBody = z.strictObject({ create: count, update: count, remove: count, seed: z.int().optional() });

const MAX_BODY_BYTES = 64 * 1024;
const MAX_VALUES = 1000;
/** Lines of truth written at once. */
const PIECE = 1000;

/** Changes what the sandbox holds, as the body asks, which is parsed from JSON. Not part of the interface. */
export type Control = (body: unknown) => Answer;

/** A control whose body is judged first. */
export function taking<T>(schema: z.ZodType<T>, act: (asked: T) => Answer): Control {
  return (body) => {
    const judged = judge(schema, body, '.');
    return 'wrong' in judged ? errorAnswer(422, judged.wrong) : act(judged.asked);
  };
}

/** `POST /_sandbox/mutate` with `{"create":n,"update":n,"remove":n,"seed":s}`, each optional; answers the counts. */
export function mutation(catalog: Catalog): Control {
  return taking(mutationBody, (asked) => {
    try {
      return { status: 200, body: JSON.stringify(catalog.mutate(asked)) };
    } catch (error) {
      if (error instanceof CatchwordError) return errorAnswer(422, messageOf(error));
      throw error;
    }
  });
}

/** @returns the request's body as parsed from JSON, or the answer that refuses it */
export async function readControl(request: IncomingMessage): Promise<{ readonly body: unknown } | Answer> {
  const body = await readBody(request, MAX_BODY_BYTES);
  if (body === null) return errorAnswer(413, `at most ${MAX_BODY_BYTES} bytes are taken`);
  const read = readJsonBody(body, MAX_VALUES);
  return 'wrong' in read ? errorAnswer(422, read.wrong) : { body: read.json };
}

/**
 * `GET /_sandbox/truth`: the living products as of the request, in the order of the listing, as lines of JSON. Which
 * ones they are is noted at once (8 bytes each); their text is made as it is read.
 */
export function truth(shelf: Shelf, params: URLSearchParams): Iterable<string> | Answer {
  const { catalog, assets } = shelf;
  const written = new Map(assets.written);
  const render = itemsFor({ ...shelf, assets: { ...assets, written } }, params);
  if (typeof render !== 'function') return render;
  const { living } = catalog;
  const indices = new Uint32Array(living);
  const versions = new Uint32Array(living);
  let noted = 0;
  for (let offset = 0, count = 1; noted < living && offset < count; offset += PIECE) {
    count = catalog.list(null, offset, PIECE, (index, version, withdrawn) => {
      if (withdrawn || noted === living) return;
      indices[noted] = index;
      versions[noted++] = version;
    });
  }
  return pieces(indices.subarray(0, noted), versions, (index, version) => `${render(index, version, false)}\n`);
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
