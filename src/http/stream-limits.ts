export const STREAM_LIMITS = {
  /** Open streams. For safety: each may hold a batch. */
  maxStreams: 300,
  /** Pause between two polls of the mirror for all waiting streams. */
  pollMs: 250,
  /** A comment is sent if nothing else was for this long. */
  heartbeatMs: 15_000,
  /** A reader that takes this long for 64 kB is disconnected. */
  slowReaderMs: 30_000,
  /** Time for the last message before the connection is destroyed. */
  graceMs: 30_000,
  /** Time for a response, or for the last message of a stream, when catchword stops. */
  stopMs: 5_000,
  /** Bytes that may wait for all readers together, streams and pages. For safety: they are memory of this process. */
  maxWaitingBytes: 64_000_000,
  /** Pause between two looks at readers that take nothing. */
  checkMs: 1_000,
};

export type StreamLimits = Readonly<typeof STREAM_LIMITS>;
