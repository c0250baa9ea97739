import type { Clock } from '@catchword/base/clock';
import type { Input } from '@catchword/base/input-stream';
import type { DotEnv, Environment } from '@catchword/settings/environment';

/** The process that runs a command. */
export interface ProcessContext extends Input {
  /** Data, and nothing else. */
  readonly stdout: NodeJS.WritableStream;
  /** Logs, progress and errors. */
  readonly stderr: NodeJS.WritableStream;
  /** Without the variables of `.env`. */
  readonly environment: Environment;
  readonly clock: Clock;
  /** Whether what serves HTTP may run in threads and processes of its own, which have the system's clock; default false. */
  readonly apart?: boolean;
}

/** The process as a command sees it: `.env` completes the environment, and a lost stdout aborts the signal, too. */
export interface CommandContext extends ProcessContext, DotEnv {
  /**
   * Notes what was written through the service, for the error that reports that it could not be printed.
   * @param what was done, with the identifier and without a secret: `created 9781402894626`
   */
  wrote(what: string): void;
  /** Sets the exit code of a command that ends without an error; the default is 0. */
  setExitCode(code: number): void;
}
