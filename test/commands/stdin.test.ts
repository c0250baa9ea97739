import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { serve } from '../client/connection.ts';
import { type Running, startWaiting } from '../support/cli.ts';
import { temporaryDirectory } from '../support/mirror.ts';
import { csvOf, settings, verify } from './credential-service.ts';

/** More than a pipe holds, so that most of it is read when this is done. */
async function write({ child }: Running, text: string): Promise<void> {
  const whole = text.padEnd(2 ** 21, '\n');
  await new Promise<void>((resolve, reject) => {
    child.stdin?.write(whole, (error) => (error == null ? resolve() : reject(error)));
  });
}

const NAMES = ['--first-name', 'Ada', '--last-name', 'Abernathy'];

describe('a command that waits for stdin', () => {
  it.each<[string[], string, NodeJS.Signals, number]>([
    [['credentials', 'verify', '-'], '', 'SIGINT', 130],
    [['credentials', 'verify', '-', '--out', 'r.csv'], csvOf(1), 'SIGTERM', 143],
    [['asset', 'put', 'A', '--file', '-'], '', 'SIGINT', 130],
    [['package', 'create', 'A', '--file', '-'], '', 'SIGTERM', 143],
    [['user', 'create', '--email', 'a@b.example', '--password-stdin', ...NAMES], '', 'SIGINT', 130],
  ])('is interrupted: %j', async (args, input, signal, code) => {
    const server = await serve(({ body }) => verify(body));
    const directory = temporaryDirectory();
    const running = startWaiting(args, settings(server), directory);
    await write(running, input);
    running.child.kill(signal);
    const ended = await running.ended;
    expect(ended).toMatchObject({ code, signal: null, stdout: '' });
    expect(ended.stderr).toMatch(/^error interrupted [^\n]+\n$/);
    expect(existsSync(join(directory, 'r.csv'))).toBe(false);
    expect(server.asked).toEqual([]);
  });

  it('ends with the reader of its output', async () => {
    const server = await serve(({ body }) => verify(body));
    const running = startWaiting(['credentials', 'verify', '-'], settings(server), temporaryDirectory());
    running.child.stdout?.destroy();
    running.child.stdin?.write(csvOf(10_000));
    expect(await running.ended).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(server.asked).toHaveLength(1);
  });
});
