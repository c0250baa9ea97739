import { z } from 'zod';

/** An attribute of an element. The schemas of XML are for the OpenAPI document, which says so in `xml`. */
export const attribute = z.string().meta({ xml: { attribute: true } });

/** The error of a v3 operation, with any status: interface, section 7. */
export const errorResponse = z.object({ code: attribute, message: attribute }).meta({ xml: { name: 'error' } });
