/** The part of an operation that does not depend on its input. */
export interface Endpoint {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Path below the base address, such as `/v4/assets/:vbid`; the input has a value for each `:name`. */
  readonly path: string;
  /** v3 operations exchange XML, v4 operations JSON. `page`: JSON of the catalog, which is not parsed here. */
  readonly format: 'json' | 'xml' | 'page';
  /** Whether the access token is sent too (interface, section 5). The API key always is. */
  readonly token: boolean;
  /** Whether a second request does no more than the first, so that the call is retried after any passing failure. */
  readonly repeatable: boolean;
  /** Field of the answer that identifies what was created. */
  readonly creates?: string;
  /** Fields of a successful answer. An answer with one of them is not an error because it also has a `code`. */
  readonly fields?: readonly string[];
  /** Statuses other than 2xx whose body is read as an answer. */
  readonly accepts?: readonly number[];
  /** What a 403 means and what to do: one sentence. */
  readonly whoMayCall?: string;
  /** Keeps bytes that are not UTF-8 in the text (see `textOfBytes`); default: such an answer is an error. */
  readonly keepsBytes?: boolean;
}
