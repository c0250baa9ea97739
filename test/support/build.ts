import { execFileSync } from 'node:child_process';

/**
 * Transpiles the current sources to dist, because tests run the program that users run. The compiler's checks are those of
 * `npm run check`, and take several times as long.
 */
export default function build(): void {
  execFileSync('npm', ['run', '--silent', 'transpile'], { stdio: ['ignore', 'inherit', 'inherit'] });
}
