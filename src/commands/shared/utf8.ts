import { isUtf8 } from 'node:buffer';
import { CatchwordError } from '../../errors.ts';

/**
 * Decodes UTF-8 strictly: a lenient decoder would send replacement characters to the service.
 * @param name of the input, for the error
 * @throws CatchwordError USAGE if the bytes are not UTF-8
 */
export function textOf(bytes: Uint8Array, name: string): string {
  if (isUtf8(bytes)) return Buffer.from(bytes).toString('utf8');
  throw new CatchwordError('USAGE', `${name}: it is not UTF-8`, { hint: 'Save it as UTF-8.' });
}
