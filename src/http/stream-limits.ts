export const STREAM_LIMITS = {
  /** Open streams. For safety: each may hold a batch. */
  maxStreams: 300,
  /** How often the mirror is polled for all waiting streams. */
  pollMs: 250,
  /** A comment is sent if nothing else was for this long. */
  heartbeatMs: 15_000,
  /** A reader that takes this long for 64 kB is disconnected. */
  slowReaderMs: 30_000,
  /** How long the last message may take before the connection is destroyed. */
  graceMs: 30_000,
  /** How long a response, or the last message of a stream, may take when catchword stops. */
  stopMs: 5_000,
  /** Bytes that may wait for all readers together, streams and pages. For safety: they are memory of this process. */
  maxWaitingBytes: 64_000_000,
  /** How often readers are checked for whether they take what waits for them. */
  checkMs: 1_000,
};

export type StreamLimits = Readonly<typeof STREAM_LIMITS>;
