import { isUtf8 } from 'node:buffer';
import { CatchwordError } from '../errors.ts';

/**
 * The text of bytes that the user gave. Decoded leniently, what is no UTF-8 would be sent as replacement characters.
 * @param name what the bytes are of
 * @throws CatchwordError USAGE where they are not UTF-8
 */
export function textOf(bytes: Uint8Array, name: string): string {
  if (isUtf8(bytes)) return Buffer.from(bytes).toString('utf8');
  throw new CatchwordError('USAGE', `${name}: it is not UTF-8`, { hint: 'Save it as UTF-8.' });
}
