import { fstatSync } from 'node:fs';

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

/** A standard global that only the browser library declares. */
declare const WebAssembly: { Memory: new (size: { initial: number }) => { readonly buffer: ArrayBuffer } };

type Poll = (subscriptions: number, events: number, count: number, eventCount: number) => number;

/** @throws Error where Node.js does not allow WASI */
async function openPoll(fd: number, memory: object): Promise<Poll> {
  // Loading WASI prints a warning that it is experimental.
  const emitWarning = process.emitWarning.bind(process);
  process.emitWarning = () => {};
  try {
    const { WASI } = await import('node:wasi');
    const wasi = new WASI({ version: 'preview1', stdin: fd, stdout: fd, stderr: fd });
    wasi.initialize({ exports: { memory } });
    return wasi.wasiImport.poll_oneoff as Poll;
  } finally {
    process.emitWarning = emitWarning;
  }
}

/** @returns a function that returns true once the reader of a pipe or socket went away; it may never notice */
export async function watchReader(stdout: NodeJS.WritableStream): Promise<() => boolean> {
  const fd = 'fd' in stdout && typeof stdout.fd === 'number' ? stdout.fd : null;
  const kind = fd === null ? null : fstatSync(fd);
  if (fd === null || !(kind?.isFIFO() || kind?.isSocket())) return () => false;
  const memory = new WebAssembly.Memory({ initial: 1 });
  const poll = await openPoll(fd, memory).catch(() => null);
  if (poll === null) return () => false;
  const view = new DataView(memory.buffer);
  view.setUint8(8, FD_WRITE);
  view.setUint32(16, 1, true);
  view.setUint32(CLOCK_SUBSCRIPTION + 16, 1, true);
  view.setBigUint64(CLOCK_SUBSCRIPTION + 24, TIMEOUT_NS, true);
  return () => {
    if (poll(0, EVENTS, 2, EVENT_COUNT) !== 0) return false;
    if (view.getUint32(EVENT_COUNT, true) === 0 || view.getUint8(EVENTS + 10) !== FD_WRITE) return false;
    return view.getUint16(EVENTS + 8, true) !== 0 || (view.getUint16(EVENTS + 24, true) & HANG_UP) !== 0;
  };
}
