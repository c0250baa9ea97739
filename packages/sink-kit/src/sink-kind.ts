import type * as z from 'zod';
import type { SinkFactory } from './sink.ts';

/** A kind of sinks or channels. */
export interface Kind<Factory> {
  /** How its addresses start. */
  readonly schemes: readonly string[];
  /** Where it is, for people, without credentials; what tells two stores apart. */
  address(url: URL, urls: readonly URL[]): string;
  /** Imports its module on demand: loading all kinds takes longer than a small delta. */
  load(url: URL): Promise<Factory>;
}

/** A fault of an address: the message and the hint. */
export type Fault = readonly [message: string, hint: string];

/** What a kind of store says of itself. Everything else asks it: settings, errors, advice, and the tables of documents. */
export interface SinkKind extends Kind<SinkFactory> {
  /** What a store gets, for documents. */
  readonly stores: string;
  /** What of two addresses is compared, for documents: a sink whose store is another one is filled from the beginning. */
  readonly identity: string;
  /** Its options, besides those of every sink. The metadata of each is its rows in documents, by how people write it. */
  readonly options: z.ZodRawShape;
  /** Parses an address, into a URL for each host; none if it is not valid. Default: `hostUrls`. */
  readonly parse?: (address: string) => readonly URL[];
  /** Finds the first fault of an address, besides those of every address. */
  faultOf?(url: URL): Fault | null;
  /** Whether its address is `<kind>:PATH`, not a URL with a host. */
  readonly isPath?: boolean;
  /** Options that name files. */
  readonly files?: readonly string[];
  /** Whether its address is that of a request: a receiver may want headers, and an `@` in its path and query. */
  readonly isRequest?: boolean;
  /** Whether a user name without a password is public. By default it is a token. */
  readonly hasPublicUser?: boolean;
  /** Whether its code is not ours, so that any of its options and errors may be its own. */
  readonly isForeign?: boolean;
  /** Further text that identifies the store; only a digest of the text is shown. */
  identifiedBy?(url: URL): string;
  /** What its store may tell two sinks apart by. */
  apartBy?(url: URL): string;
  /** What keeps two mirrors, or two sinks, apart. Default: another address. */
  readonly apart?: string;
  /** The option with which its store drops events. It then does not name every product, so it cannot be compared. */
  readonly drops?: string;
  /** Why no store of it can be compared with its source. */
  readonly incomparable?: string;
  /** Why a store that can be compared cannot be repaired. Default: events are only added to it. */
  readonly unrepairable?: string;
}
