import * as z from 'zod';

/* Parts of the schemas of answers, with what /openapi.json says of them. */

export const orNull = <T extends z.ZodType>(description: string, schema: T) => schema.nullable().meta({ description });
export const time = (description: string) => z.string().meta({ format: 'date-time', description });
export const timeOrNull = (description: string) => orNull(description, z.string().meta({ format: 'date-time' }));
export const count = (description: string) => z.int().min(0).meta({ description });
export const text = (description: string) => z.string().meta({ description });
export const textOrNull = (description: string) => orNull(description, z.string());
export const oneOf = <const T extends string>(description: string, ...values: T[]) =>
  z.enum(values).meta({ description });
export const list = <T extends z.ZodType>(description: string, element: T) =>
  z.array(element).readonly().meta({ description });
/** An answer, or a part of one. */
export const object = <T extends z.ZodRawShape>(description: string, shape: T) => z.object(shape).meta({ description });
/** A part that /openapi.json describes once, by its name. */
export const named = <T extends z.ZodRawShape>(id: string, description: string, shape: T) =>
  z.object(shape).meta({ id, description });
