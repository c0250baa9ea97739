import type { IncomingHttpHeaders } from 'node:http';
import type { z } from 'zod';
import type { Answer } from './answer.ts';

/** A request of the interface, taken apart. */
export interface OperationRequest {
  readonly method: string;
  /** What stands in the places of `:name` in the operation's path, decoded. */
  readonly values: Readonly<Record<string, string>>;
  readonly params: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** One operation of the interface: how it is asked, and what it does. Also what the OpenAPI document is made from. */
export interface Operation {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Such as `/v4/assets/:vbid`. */
  readonly path: string;
  /** Section of the interface. */
  readonly section: string;
  readonly summary: string;
  /** Whether an access token is needed besides the API key, and in which language answers and errors are. */
  readonly token: boolean;
  readonly format: 'json' | 'xml';
  readonly query?: z.ZodType;
  readonly request?: z.ZodType;
  readonly response?: z.ZodType;
  operate(request: OperationRequest): Answer | Promise<Answer>;
}
