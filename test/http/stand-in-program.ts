import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';

/** A stand-in for the program that searches. It is ready, reads no mirror, and does `onMessage` when it is asked. */
export function programThat(onMessage: string) {
  const directory = temporaryDirectory();
  const program = join(directory, 'program.mjs');
  const pidFile = join(directory, 'pids');
  const text = `import { appendFileSync } from 'node:fs';
    appendFileSync(${JSON.stringify(pidFile)}, process.pid + ' ');
    process.on('message', () => { ${onMessage} });
    process.send({ made: [] });`;
  writeFileSync(program, text);
  const pids = () => (existsSync(pidFile) ? readFileSync(pidFile, 'utf8').trim().split(' ').map(Number) : []);
  return { program: pathToFileURL(program), pids };
}

/** A program that answers `made` only when it is let go. */
export function programThatWaits(made: unknown) {
  const directory = temporaryDirectory();
  const [asked, go] = [join(directory, 'asked'), join(directory, 'go')];
  const answer = `if (fs.existsSync(${JSON.stringify(go)})) process.send(${JSON.stringify({ made })}); else setTimeout(answer, 5);`;
  const { program } = programThat(
    `import('node:fs').then((fs) => { fs.writeFileSync(${JSON.stringify(asked)}, ''); (function answer() { ${answer} })(); });`,
  );
  return { program, isAsked: () => existsSync(asked), letGo: () => writeFileSync(go, '') };
}
