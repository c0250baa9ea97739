import * as z from 'zod';
import type { Operation } from '../http/operation.ts';
import { errorSchema } from '../http/reply.ts';
import type { SandboxOptions } from '../options.ts';

type Json = Readonly<Record<string, unknown>>;

const TYPES = { json: 'application/json', xml: 'application/xml' } as const;
const ERRORS = { json: 'Errors', xml: 'Error' } as const;
const errors = z.object({ errors: z.array(z.string()) });

function refTo(part: 'schemas' | 'responses', format: Operation['format']): Json {
  return { $ref: `#/components/${part}/${ERRORS[format]}` };
}

/** As it is sent (`input`) or answered (`output`). What JSON Schema cannot express, such as a check digit, is omitted. */
function schemaOf(schema: z.ZodType, io: 'input' | 'output'): Json {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' });
  return rest;
}

interface Members {
  readonly properties?: Readonly<Record<string, Json>>;
  readonly required?: readonly string[];
}

function parametersOf(place: 'path' | 'query', schema: z.ZodType): Json[] {
  const { properties = {}, required = [] }: Members = schemaOf(schema, 'input');
  return Object.entries(properties).map(([name, { description, ...schema }]) => {
    return { name, in: place, required: required.includes(name), schema, description };
  });
}

/** The values of a path are texts, if the operation does not say more. */
function pathValues({ path, values }: Operation): z.ZodType {
  const names = [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => name);
  return values ?? z.object(Object.fromEntries(names.map((name) => [name, z.string()])));
}

/** In XML, an error may come with 200 (interface, 4.2 rule 4). */
function goodContent({ format, response }: Operation): Json {
  if (response === undefined) return {};
  const good = schemaOf(response, 'output');
  return { schema: format === 'xml' ? { oneOf: [good, refTo('schemas', format)] } : good };
}

function operationObject(operation: Operation): Json {
  const { method, path, section, summary, token, format, query = z.object({}), request } = operation;
  const type = TYPES[format];
  return {
    operationId: `${method.toLowerCase()}${path.replace(/\W+/g, '_')}`,
    summary,
    tags: [`Section ${section}`],
    security: [token === false ? { apiKey: [] } : { apiKey: [], accessToken: [] }],
    parameters: [...parametersOf('path', pathValues(operation)), ...parametersOf('query', query)],
    ...((request !== undefined || (format === 'xml' && method !== 'GET')) && {
      requestBody: {
        required: request !== undefined,
        content: { [type]: request === undefined ? {} : { schema: schemaOf(request, 'input') } },
      },
    }),
    responses: {
      200: {
        description: format === 'xml' ? 'Done, or an error: the body decides' : 'Done',
        content: { [type]: goodContent(operation) },
      },
      default: refTo('responses', format),
    },
  };
}

function pathsOf(operations: readonly Operation[]): Json {
  const paths: Record<string, Record<string, Json>> = {};
  for (const operation of operations) {
    const template = operation.path.replace(/:(\w+)/g, '{$1}');
    paths[template] = { ...paths[template], [operation.method.toLowerCase()]: operationObject(operation) };
  }
  return paths;
}

/** Describes the operations of the sandbox at `url` in OpenAPI 3.1, with the schemas that validate requests. */
export function openApiDocument(
  operations: readonly Operation[],
  url: string,
  { apiKeyHeader, accessTokenHeader }: Pick<SandboxOptions, 'apiKeyHeader' | 'accessTokenHeader'>,
): Json {
  const header = (name: string) => ({ type: 'apiKey', in: 'header', name });
  const rejected = (format: Operation['format']) => ({
    description: 'Rejected',
    content: { [TYPES[format]]: { schema: refTo('schemas', format) } },
  });
  return {
    openapi: '3.1.0',
    info: { title: 'Content distribution service, sandbox', version: '4' },
    servers: [{ url }],
    paths: pathsOf(operations),
    components: {
      securitySchemes: { apiKey: header(apiKeyHeader), accessToken: header(accessTokenHeader) },
      schemas: { [ERRORS.json]: schemaOf(errors, 'output'), [ERRORS.xml]: schemaOf(errorSchema, 'output') },
      responses: { [ERRORS.json]: rejected('json'), [ERRORS.xml]: rejected('xml') },
    },
  };
}
