import type { FastifyInstance, FastifySchema } from 'fastify';
import type { z } from 'zod';
import { ERROR } from './answers.ts';
import { parseParameters } from './parameters.ts';

/*
 * A route of the API says with zod what it takes and answers: fastify parses the parameters with it, TypeScript checks the
 * handler against it, and /openapi.json describes it. Routes without such a schema are not described.
 */

/** The description of a route in /openapi.json. */
interface About {
  /** Its name in generated clients. */
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly tags: readonly ['mirror' | 'changes' | 'operation' | 'description'];
  /** Empty for a route that needs no token. */
  readonly security?: readonly [] | undefined;
  /** Statuses that the route may answer besides 401, 403, 429, 500, 503, and 400 if it has parameters. */
  readonly errors?: readonly Status[] | undefined;
  readonly querystring?: z.ZodType;
  readonly params?: z.ZodType;
}

/** Lets routes have zod schemas. An answer is sent as it is: it is checked by the compiler and by tests. */
export function acceptZodSchemas(app: FastifyInstance): void {
  app.setValidatorCompiler<z.ZodType>(
    ({ schema }) =>
      (given: unknown) =>
        parseParameters(schema, given),
  );
  app.setSerializerCompiler(() => (answer) => JSON.stringify(answer));
}

/** An answer of another type than JSON. */
export function body(description: string, type: string, schema: z.ZodType) {
  return { description, content: { [type]: { schema } } };
}

const failed = (description: string) => body(description, 'application/json', ERROR);
/** Errors of a route by their status. */
const ERRORS = {
  400: failed('A parameter is not valid.'),
  401: failed('The token is missing or wrong.'),
  403: failed('Without a token, only local host names are allowed. A page of another site may never ask.'),
  404: failed('The mirror has no such product.'),
  409: failed('The position is not in this log: discard what you have, and read again from 0.'),
  429: failed('Too many wrong tokens came from this address. Retry after the time of `Retry-After`.'),
  500: failed('catchword failed; its log says why.'),
  503: failed(
    'catchword is stopping, or serves as many readers as it may: retry after the time of `Retry-After`. Or the mirror cannot be read.',
  ),
};
type Status = keyof typeof ERRORS;

/** The schema of a route that answers JSON. */
export function answering<T extends z.ZodType | ReturnType<typeof body>, A extends About>(
  answer: T,
  { errors = [], ...about }: A,
) {
  const token: readonly Status[] = about.security === undefined ? [401, 429] : [];
  const parameters: readonly Status[] = about.querystring === undefined ? [] : [400];
  const statuses: readonly Status[] = [...token, ...parameters, 403, 500, 503, ...errors];
  const failures: object = Object.fromEntries(statuses.map((status) => [status, ERRORS[status]]));
  return { ...about, response: { 200: answer, ...failures } };
}

/** As `answering`, for a route that sends text: JSON with the source's own numbers, or another type. */
export function sending<A extends About>(answer: z.ZodType | ReturnType<typeof body>, about: A) {
  return answering(answer, about) as Omit<A, 'errors'> & FastifySchema;
}
