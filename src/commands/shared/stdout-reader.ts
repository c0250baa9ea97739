/*
 * A pipe reports that its reader went away only when something is written to it. `changes --follow | head -1` may have
 * nothing to write until tomorrow. Node.js has no poll(2), but its WASI has `poll_oneoff`, which calls poll(2).
 */

/** Offsets in the memory of the call, and numbers of WASI preview 1. A subscription of type 0 is a clock. */
const CLOCK_SUBSCRIPTION = 48;
const EVENTS = 256;
const EVENT_COUNT = 512;
const FD_WRITE = 2;
const HANG_UP = 1;
/** Timeout of a poll: a pipe that is full, but has a reader, reports nothing. */
const TIMEOUT_NS = 2_000_000n;

interface Memory {
  readonly buffer: ArrayBuffer;
}

/** A standard global that only the browser library declares. */
declare const WebAssembly: { Memory: new (size: { initial: number }) => Memory };

interface Poll {
  poll_oneoff(subscriptions: number, events: number, count: number, eventCount: number): number;
}

async function openPoll(fd: number, memory: Memory): Promise<Poll> {
  // Loading WASI prints a warning that it is experimental.
  const emitWarning = process.emitWarning.bind(process);
  process.emitWarning = () => {};
  try {
    const { WASI } = await import('node:wasi');
    const wasi = new WASI({ version: 'preview1', stdin: fd, stdout: fd, stderr: fd });
    wasi.initialize({ exports: { memory } });
    return wasi.wasiImport as unknown as Poll;
  } finally {
    process.emitWarning = emitWarning;
  }
}

/**
 * @param fd of a pipe or socket
 * @returns a function that returns true once the reader went away; it always returns false if WASI does not work
 */
export async function watchReader(fd: number): Promise<() => boolean> {
  const memory = new WebAssembly.Memory({ initial: 1 });
  const poll = await openPoll(fd, memory).catch(() => null);
  const view = new DataView(memory.buffer);
  view.setUint8(8, FD_WRITE);
  view.setUint32(16, 1, true);
  view.setUint32(CLOCK_SUBSCRIPTION + 16, 1, true);
  view.setBigUint64(CLOCK_SUBSCRIPTION + 24, TIMEOUT_NS, true);
  return () => {
    if (poll === null || poll.poll_oneoff(0, EVENTS, 2, EVENT_COUNT) !== 0) return false;
    if (view.getUint32(EVENT_COUNT, true) === 0 || view.getUint8(EVENTS + 10) !== FD_WRITE) return false;
    return view.getUint16(EVENTS + 8, true) !== 0 || (view.getUint16(EVENTS + 24, true) & HANG_UP) !== 0;
  };
}
