import { execFileSync } from 'node:child_process';

/** Tests run the program that users run: what is in dist is made from the sources as they are now. */
export default function build(): void {
  execFileSync('npm', ['run', '--silent', 'build'], { stdio: ['ignore', 'inherit', 'inherit'] });
}
