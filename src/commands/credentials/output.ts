import { once } from 'node:events';
import type { CredentialResult, CredentialSubmission } from '../../client/credentials/submission.ts';
import { csvLine } from './csv.ts';

export type ResultFormat = 'csv' | 'ndjson';

/** Where results go; batches are written one after the other. */
export interface CredentialOutput {
  /** Told of each account before its results are written. */
  submitted(submission: CredentialSubmission): void;
  write(results: readonly CredentialResult[]): Promise<void>;
  /** Told once all results are written, and not where that was broken off. */
  finish(): Promise<void>;
  close(): Promise<void>;
}

/** The first line of results as CSV. */
export const HEADER = csvLine(['reference', 'guid', 'access_token', 'email', 'code', 'message']);

function lineOf(result: CredentialResult, format: ResultFormat): string {
  const { reference, guid } = result;
  if (format === 'csv') {
    return csvLine(
      result.ok
        ? [reference, guid, result.accessToken, result.email, null, null]
        : [reference, guid, null, null, result.code ?? 'none', result.message],
    );
  }
  const rest = result.ok
    ? { access_token: result.accessToken, email: result.email }
    : { code: result.code, message: result.message };
  return `${JSON.stringify({ ok: result.ok, reference, guid, ...rest })}\n`;
}

export function linesOf(results: readonly CredentialResult[], format: ResultFormat): string {
  return results.map((result) => lineOf(result, format)).join('');
}

export function toStream(stream: NodeJS.WritableStream, format: ResultFormat): CredentialOutput {
  let head = format === 'csv' ? HEADER : '';
  const put = async (text: string): Promise<void> => {
    const whole = head + text;
    head = '';
    if (whole !== '' && !stream.write(whole)) await once(stream, 'drain');
  };
  return {
    submitted: () => {},
    write: (results) => put(linesOf(results, format)),
    finish: () => put(''),
    close: async () => {},
  };
}
