import { z } from 'zod';

/** A line of the log that says that something failed. */
export interface Failure {
  /** The stable code of the error; the message where it has none. */
  readonly code: string;
  readonly text: string;
}

const ERROR_LEVEL = 50;
const line = z.looseObject({
  level: z.union([z.number(), z.enum(['error', 'fatal']).transform(() => ERROR_LEVEL), z.string().transform(() => 0)]),
  msg: z.string().default(''),
  code: z.string().optional(),
});

/** What the daemon has printed at level error or above, as JSON or for a person to read. */
export function failuresIn(printed: string): Failure[] {
  return printed.split('\n').flatMap((text): Failure[] => {
    const forPeople = /^error .*\[([A-Z_]+)\]$/.exec(text);
    if (forPeople !== null) return [{ code: forPeople[1] ?? '', text }];
    if (!text.startsWith('{')) return [];
    const { level, msg, code } = line.parse(JSON.parse(text));
    return level < ERROR_LEVEL ? [] : [{ code: code ?? msg, text }];
  });
}

export function lastLines(text: string, count: number): string {
  return text.trimEnd().split('\n').slice(-count).join('\n');
}
