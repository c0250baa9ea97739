import { z } from 'zod';

/** A change to the state of a sandbox, as the journal records it. */
export const changeSchema = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('request'),
    method: z.string(),
    path: z.string(),
    query: z.string(),
    apiKey: z.string(),
    accessToken: z.string().nullable(),
    /** Text is enough: each operation that reads a body rejects one that is not UTF-8. */
    body: z.string(),
  }),
  z.object({ kind: z.literal('control'), path: z.string(), body: z.unknown() }),
  /** A callback was made, or given up. */
  z.object({ kind: z.literal('called'), call: z.object({ vbid: z.string(), startedAt: z.number() }) }),
]);

export type Change = Readonly<z.infer<typeof changeSchema>>;

/** Records a change in the journal, if there is one, and then makes it, at the time that was recorded. */
export type RecordChange = <T>(change: Change, act: () => T) => T;
