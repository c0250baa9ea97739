import { CatchwordError } from '@catchword/base/errors';
import { failureOf, serveUntil } from '@catchword/base/lifecycle';
import { expect, it } from 'vitest';

it('the error of a service is the replaced mirror that closing it finds', async () => {
  const reader = {
    name: 'reader',
    failed: failureOf(Promise.reject(new Error('database disk image is malformed'))),
    stop: async () => {},
  };
  const closing = (error?: Error) => ({
    name: 'mirror',
    stop: async () => {
      if (error !== undefined) throw error;
    },
  });
  const replaced = new CatchwordError('MIRROR_REPLACED', 'the file was written over', { hint: 'Restart.' });
  const { signal } = new AbortController();
  await expect(serveUntil(signal, [closing(replaced), reader])).rejects.toBe(replaced);
  for (const mirror of [closing(), closing(new Error('disk I/O error'))]) {
    await expect(serveUntil(signal, [mirror, reader])).rejects.toThrow('malformed');
  }
});
