import { z } from 'zod';

/** A logged failure. */
export interface Failure {
  /** The code of the error; the message if it has no code. */
  readonly code: string;
  readonly text: string;
}

const ERROR_LEVEL = 50;
const line = z.looseObject({ level: z.number(), time: z.iso.datetime(), msg: z.string(), code: z.string().optional() });

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/**
 * The lines that the daemon logged at level error or above, and any output that is not a log line. Ignores an
 * incomplete last line.
 */
export function failuresIn(printed: string): Failure[] {
  const texts = printed.slice(0, printed.lastIndexOf('\n') + 1).split('\n');
  return texts.flatMap((text): Failure[] => {
    if (text === '') return [];
    const { success, data } = line.safeParse(parsed(text));
    if (!success) return [{ code: 'not a line of the log', text }];
    return data.level < ERROR_LEVEL ? [] : [{ code: data.code ?? data.msg, text }];
  });
}

export function lastLines(text: string, count: number): string {
  return text.trimEnd().split('\n').slice(-count).join('\n');
}
