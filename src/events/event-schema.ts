import { PARTIAL_PRODUCT, PRODUCT } from '@catchword/catalog/product-type';
import { CHANGE_OPS, type ChangeOp } from '@catchword/catalog/run-types';
import * as z from 'zod';

/* The event of the change log, declared once: its type, its check, and its JSON Schema. */

const ABOUT = {
  vbid: z.string().meta({ description: 'The key of the product.' }),
  changed: z
    .array(z.string())
    .readonly()
    .meta({ description: 'JSON pointers of the changed fields. Empty if the product was created or removed.' }),
  run: z.int().meta({ description: 'The run that recorded the change.' }),
  cause: z.enum(['full', 'delta']).meta({ description: 'The kind of that run.' }),
  view: z
    .enum(['entered', 'left'])
    .optional()
    .meta({ description: 'Of a reader with a filter: whether the product began or ceased to match.' }),
};
const LAST = PRODUCT.nullable().meta({ description: 'The last known product.' });
const CHANGED = PARTIAL_PRODUCT.nullable().meta({
  description: 'Null if the product is as it was when it was removed.',
});

function data<Op extends ChangeOp, P extends z.ZodType, B extends z.ZodType>(op: Op, product: P, before: B) {
  return z.looseObject({ op: z.literal(op), product, before, ...ABOUT });
}

const DATA = z.discriminatedUnion('op', [
  data('created', PRODUCT, z.null()),
  data('updated', PRODUCT, PARTIAL_PRODUCT),
  data('removed', z.null(), LAST),
  data('restored', PRODUCT, CHANGED),
]);

const EXAMPLE = {
  specversion: '1.0',
  id: '0b9f9a3c-4b1e-4c1f-9a55-2f1f5b0c7a11:1042',
  source: 'https://catalog.example/v4/products',
  type: 'catchword.product.updated',
  subject: '9788074089008',
  time: '2026-11-20T02:00:07.412Z',
  datacontenttype: 'application/json',
  sequence: '00000000000000001042',
  data: {
    op: 'updated',
    vbid: '9788074089008',
    product: { vbid: '9788074089008', title: 'A New History of Bridges', edition: 2 },
    before: { title: 'A History of Bridges' },
    changed: ['/title'],
    run: 12,
    cause: 'delta',
  },
};

/** A change of one product: a CloudEvents 1.0 event. */
export const EVENT = z
  .looseObject({
    specversion: z.literal('1.0'),
    id: z.string().meta({ description: 'Names this change, and never another one. Compare it; its form may change.' }),
    source: z.string().meta({ description: 'The products address of the service.' }),
    type: z
      .enum(CHANGE_OPS.map((op) => `catchword.product.${op}` as const))
      .meta({ description: '`catchword.product.` and the op.' }),
    subject: z.string().meta({ description: 'The key of the product, as `data.vbid`.' }),
    time: z.iso.datetime().meta({ description: 'When the change was recorded, by the clock of catchword.' }),
    datacontenttype: z.literal('application/json'),
    sequence: z
      .string()
      .regex(/^\d{20}$/)
      .meta({ description: 'The number of the change, padded with zeros so that it sorts as text.' }),
    data: DATA,
  })
  .meta({ id: 'Event', description: 'A change of one product: a CloudEvents 1.0 event.', examples: [EXAMPLE] });

/** Leaves out of a JSON Schema what zod adds: it says nothing about what catchword sends. */
export function plainSchema({ jsonSchema }: { readonly jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  delete jsonSchema.readOnly;
  if (jsonSchema.format === 'date-time') delete jsonSchema.pattern;
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
  // Later versions may add fields.
  const { additionalProperties: more } = jsonSchema;
  if (more === false || (typeof more === 'object' && Object.keys(more).length === 0)) {
    delete jsonSchema.additionalProperties;
  }
}

/** The JSON Schema (2020-12) of an event. */
export function eventSchema(): Readonly<Record<string, unknown>> {
  const { $schema, $defs = {} } = z.toJSONSchema(EVENT, { unrepresentable: 'any', override: plainSchema });
  const { Event: { id: _id, ...event } = {}, ...parts } = $defs;
  return { $schema, title: 'catchword event', ...event, $defs: parts };
}
