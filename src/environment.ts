import { existsSync, readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Adds the variables of `.env` in `directory` to those of a process, which take precedence. */
export function withDotEnv(own: Environment, directory: string) {
  const file = `${directory}/.env`;
  const added = existsSync(file) ? parseEnv(readFileSync(file, 'utf8')) : {};
  const names = Object.keys(added).filter((name) => own[name] === undefined);
  return { environment: { ...added, ...own }, fromDotEnv: new Set(names) };
}
