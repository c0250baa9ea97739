import { existsSync, readFileSync, statSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { CatchwordError, systemCodeOf } from '../base/errors.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** The encodings other than UTF-8 that PowerShell and editors of Windows write, by the mark at the start of a file. */
const ENCODINGS: Readonly<Record<string, string>> = { fffe: 'utf-16le', feff: 'utf-16be' };

/**
 * Reads a file that people write settings into, in UTF-8, or in what its byte order mark names.
 * @param name how an error names it: a path may be a secret that was set there by mistake
 * @throws CatchwordError CONFIG_INVALID if it cannot be read, or is not text
 */
export function readText(name: string, path: string, setting?: string): string {
  const invalid = (problem: string, hint: string): CatchwordError =>
    new CatchwordError('CONFIG_INVALID', setting === undefined ? problem : `${setting}: ${problem}`, { hint, setting });
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (cause) {
    const hint = 'It must be a file that this user may read.';
    throw invalid(`cannot read ${name} (${systemCodeOf(cause) ?? 'unknown error'})`, hint);
  }
  // It also removes the mark, and puts U+FFFD for what it cannot read, which would become a part of a password or path.
  const text = new TextDecoder(ENCODINGS[bytes.toString('hex', 0, 2)]).decode(bytes);
  if (!/[\0\uFFFD]/.test(text)) return text;
  throw invalid(`${name} is not text in UTF-8, or in UTF-16 with a byte order mark`, 'Save it as UTF-8.');
}

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
  /** Reads `.env` again, but not a pipe, which may block this process. @throws CatchwordError CONFIG_INVALID */
  readonly again: () => Environment;
}

/**
 * Adds the variables of `.env` in `directory` to those of a process, which take precedence.
 * @throws as `readText`
 */
export function withDotEnv(ofProcess: Environment, directory: string): DotEnv {
  const own = inUpperCase(ofProcess);
  const file = `${directory}/.env`;
  // A carriage return alone ends a line, too: otherwise the next line, perhaps a key, would be quoted with this one.
  const added = inUpperCase(existsSync(file) ? parseEnv(readText('.env', file).replaceAll(/\r\n?/g, '\n')) : {});
  const names = Object.keys(added).filter((name) => own[name] === undefined);
  const environment = { ...added, ...own };
  const isPipe = () => statSync(file, { throwIfNoEntry: false })?.isFIFO() === true;
  const again = () => (isPipe() ? environment : withDotEnv(ofProcess, directory).environment);
  return { environment, fromDotEnv: new Set(names), again };
}
