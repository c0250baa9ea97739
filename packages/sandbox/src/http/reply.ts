import { messageOf } from '@catchword/base/errors';
import { writeXml, type XmlTree } from '@catchword/xml/write';
import * as z from 'zod';

/** A reply before it is sent, and perhaps damaged on its way by a fault. @rule 7-7 */
export interface Reply {
  readonly status: number;
  readonly body: string;
  /** Default: application/json. */
  readonly contentType?: string;
  /** Whole seconds. */
  readonly retryAfter?: number;
}

export type Format = 'json' | 'xml';

const MAX_ERRORS = 100;

export function jsonReply(value: unknown): Reply {
  return { status: 200, body: JSON.stringify(value) };
}

export function xmlReply(root: XmlTree, status = 200): Reply {
  return { status, body: writeXml(root), contentType: 'application/xml; charset=utf-8' };
}

/** Child elements with texts; undefined fields are omitted. */
export function elementsOf(fields: Readonly<Record<string, string | undefined>>): XmlTree[] {
  return Object.entries(fields).flatMap(([name, content]) => (content === undefined ? [] : [{ name, content }]));
}

export interface RejectionDetails {
  /** Custom code of a v3 operation. Default: the status. */
  readonly code?: number | undefined;
  readonly retryAfter?: number | undefined;
}

/** Thrown to answer a request with an error. Whatever throws it has changed nothing before. */
export class Rejection extends Error {
  readonly status: number;
  readonly errors: readonly string[];
  readonly details: RejectionDetails;

  constructor(status: number, errors: string | readonly string[], details: RejectionDetails = {}) {
    const list = typeof errors === 'string' ? [errors] : errors;
    super(list[0]);
    this.status = status;
    const more = list.length - MAX_ERRORS;
    this.errors = more > 0 ? [...list.slice(0, MAX_ERRORS), `… and ${more} more`] : list;
    this.details = details;
  }
}

/**
 * Custom codes of the v3 operations: the interface's 601 and 603, and others that services were seen to use.
 * @rule 7-5..6
 */
export const CODES = {
  redemptionInvalid: 468,
  alreadyRedeemed: 469,
  redemptionFailed: 470,
  userNotFound: 474,
  tokenNotValid: 601,
  referenceUnknown: 603,
  malformed: 650,
  /** Seen for a reference; the code for an email is not known. */
  alreadyInUse: 904,
} as const;

export const MESSAGES: Readonly<Record<number, string>> = {
  [CODES.redemptionInvalid]: 'The redemption code is not valid',
  [CODES.alreadyRedeemed]: 'The redemption code is already redeemed',
  [CODES.redemptionFailed]: 'The redemption failed',
  [CODES.userNotFound]: 'User not found',
  [CODES.tokenNotValid]: 'The access token is not valid any longer for the user',
  [CODES.referenceUnknown]: 'The reference value does not exist',
};

/** Rejects a whole v3 request. With status 200 only the body says that the request failed. */
export function codeRejection(status: number, code: number, message = MESSAGES[code] ?? `Error ${code}`): Rejection {
  return new Rejection(status, message, { code });
}

/**
 * Writes an error (interface, section 7) as live services do: an array of texts in JSON, or one `error-response` in XML.
 * What is not a rejection is an internal error.
 */
export function rejectionReply(format: Format, thrown: unknown): Reply {
  const { status, errors, details } = thrown instanceof Rejection ? thrown : new Rejection(500, messageOf(thrown));
  const { code = status, retryAfter } = details;
  const fields = { 'error-code': String(code), 'error-text': errors.join('; ') };
  const error = { name: 'error-response', content: elementsOf(fields) };
  const reply = format === 'json' ? { status, body: JSON.stringify({ errors }) } : xmlReply(error, status);
  return { ...reply, ...(retryAfter !== undefined && { retryAfter }) };
}

/** An attribute of an element. The schemas of XML are for the OpenAPI document, which says so in `xml`. */
export const attribute = z.string().meta({ xml: { attribute: true } });

/** The error of a v3 operation, with any status: interface, section 7. */
export const errorSchema = z
  .object({ 'error-code': z.string(), 'error-text': z.string() })
  .meta({ xml: { name: 'error-response' } });
