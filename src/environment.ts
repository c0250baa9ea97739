import { existsSync, readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';

export type Environment = Readonly<Record<string, string | undefined>>;

/** An environment that a `.env` file completes. */
export interface CompletedEnvironment {
  readonly environment: Environment;
  /** Names of the variables that only the file sets. */
  readonly fromDotEnv: ReadonlySet<string>;
}

/** Adds the variables of `.env` in `directory` to those of a process, which take precedence. */
export function withDotEnv(own: Environment, directory: string): CompletedEnvironment {
  const file = `${directory}/.env`;
  const added = existsSync(file) ? parseEnv(readFileSync(file, 'utf8')) : {};
  const names = Object.keys(added).filter((name) => own[name] === undefined);
  return { environment: { ...added, ...own }, fromDotEnv: new Set(names) };
}
