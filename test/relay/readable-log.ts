import { Writable } from 'node:stream';
import { pino } from 'pino';

/** Makes a log whose lines a test can read. */
export function readableLog() {
  const lines: Record<string, unknown>[] = [];
  const stream = new Writable({
    write: (line, _encoding, done) => {
      lines.push(JSON.parse(String(line)) as Record<string, unknown>);
      done();
    },
  });
  return { lines, log: pino({ level: 'info' }, stream) };
}
