import type { z } from 'zod';
import type { FaultKind } from './faults.ts';
import type { Format, Reply } from './reply.ts';

/** A request of the interface whose API key and access token were accepted. */
export interface OperationRequest {
  /** Values of the `:name` segments of the operation's path, decoded. */
  readonly values: Readonly<Record<string, string>>;
  readonly params: URLSearchParams;
  readonly body: Buffer;
  readonly apiKey: string;
  /** Null if the request has none. */
  readonly accessToken: string | null;
  readonly fault: FaultKind | null;
}

/** One operation of the interface: what it accepts and what it does. The OpenAPI document is made from it. */
export interface Operation {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly section: string;
  readonly summary: string;
  /** Whether an access token is required besides the API key. `any`: a token that is not valid is accepted too. */
  readonly token: boolean | 'any';
  readonly format: Format;
  /** The header that must name JSON if the sandbox is strict. */
  readonly strictHeader?: 'accept' | 'content-type';
  /** Schema of the path's values. Default: any text. */
  readonly values?: z.ZodType;
  readonly query?: z.ZodType;
  readonly request?: z.ZodType;
  readonly response?: z.ZodType;
  /** Whether it may change the state, so that the journal records it. Default: all but GET. */
  readonly changes?: boolean;
  /** Returns the body that the journal records, without secrets. Default: the body as sent. */
  readonly redact?: (body: Buffer) => Buffer;
  /** Whether `--faults` strikes it. Default: no. */
  readonly faults?: boolean;
  /** Runs without waiting, so that changes happen in the order and at the times of the journal. @throws Rejection */
  run(request: OperationRequest): Reply;
}
