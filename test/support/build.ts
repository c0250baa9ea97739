import { execFileSync } from 'node:child_process';

/** Builds dist from the current sources, because tests run the program that users run. */
export default function build(): void {
  execFileSync('npm', ['run', '--silent', 'build'], { stdio: ['ignore', 'inherit', 'inherit'] });
}
