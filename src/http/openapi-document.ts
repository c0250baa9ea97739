import { VERSION } from '@catchword/base/version';
import Fastify, { type FastifyInstance } from 'fastify';
import type { OpenAPIV3_1 } from 'openapi-types';
import * as z from 'zod';
import { eventSchema, plainSchema } from '../events/event-schema.ts';
import { acceptZodSchemas, body, sending } from './route-schema.ts';

const INFO = {
  title: 'catchword',
  version: VERSION,
  description:
    'Reads an exact local mirror of a product catalog, and its change log. Every answer shows one state of the mirror; a page of changes is read while it is sent. Nothing here changes the mirror. An unknown or repeated parameter is an error. The status of an answer is for proxies and caches; programs match `error.code`. Numbers in products are sent exactly as the source wrote them: a parser that reads numbers as 64-bit floats rounds long ones.',
  license: { name: 'MIT', identifier: 'MIT' },
};

const TAGS = [
  { name: 'mirror', description: 'The state of the mirror, its runs and its products.' },
  { name: 'changes', description: 'What changed, as CloudEvents, in order.' },
  { name: 'operation', description: 'For process managers and monitoring.' },
  { name: 'description', description: 'This document, and the JSON Schema of an event.' },
];

const BEARER = {
  type: 'http',
  scheme: 'bearer',
  description: 'The value of CATCHWORD_HTTP_TOKEN, if it is set.',
} as const;

const ANY_OBJECT = z.looseObject({});
const DOCUMENT = sending(ANY_OBJECT.meta({ description: 'An OpenAPI 3.1 document.' }), {
  operationId: 'getDescription',
  summary: 'This document',
  description: 'The API as an OpenAPI 3.1 document.',
  tags: ['description'],
});
const EVENT_SCHEMA = sending(body('A JSON Schema (2020-12).', 'application/schema+json', ANY_OBJECT), {
  operationId: 'getEventSchema',
  summary: 'The JSON Schema of an event',
  description: 'Describes the events of the change log, of webhooks, and of all other sinks that get events.',
  tags: ['description'],
});

type Part = Parameters<typeof plainSchema>[0] & { readonly zodSchema: z.core.$ZodType };

function override({ zodSchema, jsonSchema }: Part): void {
  plainSchema({ jsonSchema });
  // zod leaves out the default of a value that it transforms.
  if (zodSchema instanceof z.ZodDefault) jsonSchema.default = zodSchema.def.defaultValue;
}

/** @param addRoutes adds the routes to an instance that never listens @returns the text of an OpenAPI 3.1 document */
async function describe(addRoutes: (app: FastifyInstance) => unknown): Promise<string> {
  // Loaded here, because few processes are ever asked for the document.
  const [{ default: swagger }, { createJsonSchemaTransform, createJsonSchemaTransformObject }] = await Promise.all([
    import('@fastify/swagger'),
    import('fastify-type-provider-zod'),
  ]);
  const zodToJsonConfig = { override };
  const addSchemas = createJsonSchemaTransformObject({ zodToJsonConfig });
  const app = Fastify();
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: INFO,
      servers: [{ url: '/' }],
      tags: TAGS,
      security: [{ bearer: [] }],
      components: { securitySchemes: { bearer: BEARER } },
    },
    hideUntagged: true,
    transform: createJsonSchemaTransform({ zodToJsonConfig }),
    transformObject: (document) => {
      const { components, ...rest } = addSchemas(document) as OpenAPIV3_1.Document;
      // The library adds each schema twice. Only parameters could refer to the one that ends in `Input`, and none does.
      const schemas = Object.entries(components?.schemas ?? {}).filter(([name]) => !name.endsWith('Input'));
      return { ...rest, components: { ...components, schemas: Object.fromEntries(schemas) } };
    },
  });
  acceptZodSchemas(app);
  addRoutes(app);
  await app.ready();
  try {
    return JSON.stringify(app.swagger());
  } finally {
    await app.close();
  }
}

/**
 * Adds routes, a description of them at `/openapi.json`, and the JSON Schema of an event at `/schemas/event.json`.
 * @param addRoutes called for `app`, and for an instance that is only described, when somebody first asks for that
 * @returns what `addRoutes` returned for `app`
 */
export function addDescribed<T>(app: FastifyInstance, addRoutes: (app: FastifyInstance) => T): T {
  let document: Promise<string> | undefined;
  const addAll = (to: FastifyInstance): T => {
    const added = addRoutes(to);
    to.get('/openapi.json', { schema: DOCUMENT }, async (_request, reply) => {
      document ??= describe(addAll);
      return reply.type('application/json; charset=utf-8').send(await document);
    });
    to.get('/schemas/event.json', { schema: EVENT_SCHEMA }, async (_request, reply) =>
      reply.type('application/schema+json; charset=utf-8').send(JSON.stringify(eventSchema())),
    );
    return added;
  };
  return addAll(app);
}
