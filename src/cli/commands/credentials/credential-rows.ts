import { stringify } from 'csv-stringify/sync';
import type { CredentialResult } from '../../../client/credentials/submission.ts';

export type ResultFormat = 'csv' | 'ndjson';

const COLUMNS = ['reference', 'guid', 'access_token', 'email', 'code', 'message'];
/** White space at an end of a field is quoted, too: some readers would remove it. */
const CSV = { columns: COLUMNS, quoted_match: /^\s|\s$/ };

/** The first line of the results in this format. */
export function headerOf(format: ResultFormat): string {
  return format === 'csv' ? stringify([COLUMNS], CSV) : '';
}

function rowOf(result: CredentialResult) {
  const { ok, reference, guid } = result;
  if (result.ok) return { ok, reference, guid, access_token: result.accessToken, email: result.email };
  return { ok, reference, guid, code: result.code, message: result.message };
}

export function rowsOf(results: readonly CredentialResult[], format: ResultFormat): string {
  const rows = results.map(rowOf);
  if (format === 'ndjson') return rows.map((row) => `${JSON.stringify(row)}\n`).join('');
  return stringify(
    rows.map((row) => (row.ok ? row : { ...row, code: row.code ?? 'none' })),
    CSV,
  );
}
