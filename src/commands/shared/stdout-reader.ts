/*
 * A pipe tells its writer that the reader went away when something is written, and only then. `changes --follow | head -1`
 * has nothing to write until the next change, which may be tomorrow. Node.js has no poll(2), a write of no bytes to a pipe
 * succeeds whether somebody reads it or not, and bytes would have to be part of the output. WASI, which comes with Node.js,
 * has `poll_oneoff`, and that asks poll(2).
 */

/** Where the call's arguments and results lie in its memory; sizes are those of WASI preview 1. */
const SUBSCRIPTIONS = 0;
const SUBSCRIPTION_BYTES = 48;
const EVENTS = 256;
const EVENT_COUNT = 512;
const CLOCK = 0;
const FD_WRITE = 2;
const HANG_UP = 1;
/** A pipe that is full, with a reader, would be waited for; this long, then. */
const PATIENCE_NS = 2_000_000n;

interface Memory {
  readonly buffer: ArrayBuffer;
}

/** A standard global, of which only the types of browsers know. */
declare const WebAssembly: { Memory: new (size: { initial: number }) => Memory };

/** The parts of WASI that are used here. */
interface Poll {
  poll_oneoff(subscriptions: number, events: number, count: number, eventCount: number): number;
}

async function openPoll(fd: number, memory: Memory): Promise<Poll> {
  // Loading it warns on stderr that it is experimental; where it does not work, a follower ends with the next change.
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
 * Looks whether what is written to stdout can still be read by somebody.
 * @param fd of a pipe or socket
 * @returns a function that returns true once the reader went away; always false where that cannot be found out
 */
export async function watchReader(fd: number): Promise<() => boolean> {
  const memory = new WebAssembly.Memory({ initial: 1 });
  const poll = await openPoll(fd, memory).catch(() => null);
  const view = new DataView(memory.buffer);
  const clock = SUBSCRIPTIONS + SUBSCRIPTION_BYTES;
  view.setUint8(SUBSCRIPTIONS + 8, FD_WRITE);
  view.setUint32(SUBSCRIPTIONS + 16, 1, true);
  view.setUint8(clock + 8, CLOCK);
  view.setUint32(clock + 16, 1, true);
  view.setBigUint64(clock + 24, PATIENCE_NS, true);
  return () => {
    if (poll === null || poll.poll_oneoff(SUBSCRIPTIONS, EVENTS, 2, EVENT_COUNT) !== 0) return false;
    if (view.getUint32(EVENT_COUNT, true) === 0 || view.getUint8(EVENTS + 10) !== FD_WRITE) return false;
    return view.getUint16(EVENTS + 8, true) !== 0 || (view.getUint16(EVENTS + 24, true) & HANG_UP) !== 0;
  };
}
