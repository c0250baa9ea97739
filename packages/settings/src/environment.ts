import { existsSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { systemCodeOf } from '@catchword/base/errors';
import { bytesInTime, readText, textOf } from '@catchword/base/text-file';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Other programs read these by their names in lower case, too, which take precedence there. */
const EITHER_CASE = ['HTTPS_PROXY', 'HTTP_PROXY', 'NO_PROXY'];

function inUpperCase(given: Environment): Environment {
  const lower = EITHER_CASE.map((name) => [name, given[name.toLowerCase()] || given[name]] as const);
  return { ...given, ...Object.fromEntries(lower.filter(([, value]) => value !== undefined)) };
}

/** The variables of a process with those of `.env`. */
export interface DotEnv {
  readonly environment: Environment;
  /** Names of the variables that only `.env` sets. */
  readonly fromDotEnv: ReadonlySet<string>;
  /** Reads `.env` again. @throws Error if it cannot be read within some seconds */
  readonly again: () => Promise<Environment>;
}

/**
 * Adds the variables of `.env` in `directory` to those of a process, which take precedence.
 * @throws as `readText`
 */
export function withDotEnv(ofProcess: Environment, directory: string): DotEnv {
  const file = `${directory}/.env`;
  const own = inUpperCase(ofProcess);
  // A carriage return alone ends a line, too: otherwise the next line, perhaps a key, would be quoted with this one.
  const added = (text: string) => inUpperCase(parseEnv(text.replaceAll(/\r\n?/g, '\n')));
  const ofFile = existsSync(file) ? added(readText('.env', file)) : {};
  const names = Object.keys(ofFile).filter((name) => own[name] === undefined);
  const environment = { ...ofFile, ...own };
  const again = async () => {
    try {
      return { ...added(textOf('.env', await bytesInTime(file))), ...own };
    } catch (error) {
      if (systemCodeOf(error) === 'ENOENT') return own;
      throw error;
    }
  };
  return { environment, fromDotEnv: new Set(names), again };
}
