import { expect } from 'vitest';

interface Printed {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Expects a command to exit with this code, print only an error and a hint on stderr, and say this there. */
export function expectFailure({ code, stdout, stderr }: Printed, expected: number, said: string | RegExp): void {
  expect({ code, stdout }, stderr).toEqual({ code: expected, stdout: '' });
  expect(stderr).toMatch(/^error [^\n]+\nhint {2}[^\n]+\n$/);
  expect(stderr).toMatch(said);
}
