import type { Clock } from '../../clock.ts';
import type { Environment } from '../../config.ts';

/** What a command has of the process that runs it. */
export interface CommandContext {
  /** Data, and nothing else. */
  readonly stdout: NodeJS.WritableStream;
  /** Logs and progress. */
  readonly stderr: NodeJS.WritableStream;
  readonly environment: Environment;
  /** Aborted by the first SIGINT or SIGTERM: the command is to stop cleanly and return. */
  readonly signal: AbortSignal;
  readonly clock: Clock;
  /**
   * Notes what was written through the service, for the error that says that it cannot be printed.
   * @param what was done, with the identifier and without a secret: `created 9781402894626`
   */
  wrote(what: string): void;
  /** Exit code of a command that ends without an error; 0 where it is not called. */
  setExitCode(code: number): void;
}
