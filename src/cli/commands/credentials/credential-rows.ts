import type { CredentialResult } from '../../../client/credentials/submission.ts';

export type ResultFormat = 'csv' | 'ndjson';

function csvRow(fields: readonly (string | number | null)[]): string {
  const written = fields.map((field) => {
    const text = String(field ?? '');
    return /[",\r\n]/.test(text) || text.trim() !== text ? `"${text.replaceAll('"', '""')}"` : text;
  });
  return `${written.join(',')}\n`;
}

/** The first line of the results in this format. */
export function headerOf(format: ResultFormat): string {
  return format === 'csv' ? csvRow(['reference', 'guid', 'access_token', 'email', 'code', 'message']) : '';
}

function rowOf(result: CredentialResult, format: ResultFormat): string {
  const { ok, reference, guid } = result;
  if (result.ok) {
    const { accessToken, email } = result;
    if (format === 'csv') return csvRow([reference, guid, accessToken, email, null, null]);
    return `${JSON.stringify({ ok, reference, guid, access_token: accessToken, email })}\n`;
  }
  const { code, message } = result;
  if (format === 'csv') return csvRow([reference, guid, null, null, code ?? 'none', message]);
  return `${JSON.stringify({ ok, reference, guid, code, message })}\n`;
}

export function rowsOf(results: readonly CredentialResult[], format: ResultFormat): string {
  return results.map((result) => rowOf(result, format)).join('');
}
