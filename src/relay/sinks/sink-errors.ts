import { SinkError } from '../sink.ts';

/** Runs work of a driver; what it throws becomes a SinkError. */
export type OrSinkError = <T>(work: () => Promise<T>) => Promise<T>;

export function sinkErrorsBy(toSinkError: (error: unknown) => SinkError): OrSinkError {
  return async (work) => {
    try {
      return await work();
    } catch (error) {
      throw error instanceof SinkError ? error : toSinkError(error);
    }
  };
}
