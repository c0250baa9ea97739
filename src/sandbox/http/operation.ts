import type { z } from 'zod';
import type { FaultKind } from './faults.ts';
import type { Answer } from './response.ts';

/** A request of the interface, taken apart, after its API key and access token were found good. */
export interface OperationRequest {
  /** What stands in the places of `:name` in the operation's path, decoded. */
  readonly values: Readonly<Record<string, string>>;
  readonly params: URLSearchParams;
  readonly body: Buffer;
  readonly apiKey: string;
  /** Null where none was sent and none is needed. */
  readonly accessToken: string | null;
  /** Null where the operation is not one that faults strike. */
  readonly fault: FaultKind | null;
}

/** One operation of the interface: how it is asked, and what it does. Also what the OpenAPI document is made from. */
export interface Operation {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Such as `/v4/assets/:vbid`. */
  readonly path: string;
  /** Section of the interface. */
  readonly section: string;
  readonly summary: string;
  /** Whether an access token is needed besides the API key; `any`: one that is not valid, too. */
  readonly token: boolean | 'any';
  /** In which language answers and errors are. */
  readonly format: 'json' | 'xml';
  /** A header that the interface names besides those of section 5; its value: `application/json`. */
  readonly names?: 'accept' | 'content-type';
  /** Of what stands in the path, where more is asked of it than that it is there. */
  readonly values?: z.ZodType;
  readonly query?: z.ZodType;
  readonly request?: z.ZodType;
  readonly response?: z.ZodType;
  /** Whether it may change what the sandbox holds, so that the journal keeps it. Default: all but GET. */
  readonly changes?: boolean;
  /** What the journal keeps in place of the body, where that holds a secret. Default: the body. */
  readonly kept?: (body: Buffer) => Buffer;
  /** Whether `--faults` strikes it. Default: no. */
  readonly faults?: boolean;
  /** At once, so that changes happen in the order in which the journal holds them and at the time it says. */
  operate(request: OperationRequest): Answer;
}
