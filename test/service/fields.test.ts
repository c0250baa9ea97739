// @module-tag service

import { sandboxFor } from '@catchword/testing/sandbox-for';
import { expect, it } from 'vitest';
import { failure } from '../../packages/client/test/connection.ts';
import { talk } from '../../packages/client/test/support.ts';
import { NEW, put } from '../../packages/sandbox/test/asset-requests.ts';
import { FIELDS } from './fields.ts';

/** A value without the quotes that numbers and booleans may have. */
function bare(value: unknown, isNumber = false): unknown {
  return JSON.parse(JSON.stringify(value), (_name, one) =>
    typeof one === 'string' && (isNumber || /^(true|false)$/.test(one)) ? JSON.parse(one) : one,
  );
}

it.each(FIELDS)('the sandbox takes and rejects the values of $names', async (field) => {
  const sandbox = await sandboxFor({ items: 0 });
  const { names, isNumber, isElsewhere, taken, refused, byService = [], byClient = [] } = field;
  for (const name of names.split(' ')) {
    for (const value of taken) {
      const { body, errors } = await put(sandbox, 'L-1', { ...NEW, [name]: value });
      expect([value, errors]).toEqual([value, []]);
      if (isElsewhere !== true) expect(body).toMatchObject({ [name]: bare(value, isNumber) });
    }
    for (const value of [...refused, ...byService]) {
      const { status, errors } = await put(sandbox, 'L-1', { ...NEW, [name]: value });
      expect([value, status, errors]).toEqual([value, 422, [expect.stringMatching(new RegExp(`^${name}[:/]`))]]);
    }
    for (const value of byClient) expect((await put(sandbox, 'L-1', { ...NEW, [name]: value })).status).toBe(200);
  }
});

it.each(FIELDS)('the client sends the values of $names, or names what is not allowed', async (field) => {
  const { names, isNumber, isElsewhere, taken, refused, must, byService = [], byClient = [] } = field;
  for (const name of names.split(' ')) {
    const { client, asked } = await talk(({ body }) => ({ body: { vbid: 'L-1', ...JSON.parse(body) } }));
    for (const value of taken) {
      const sent = { [name]: bare(value, isNumber) };
      const asset = await client.assets.update('L-1', { [name]: value });
      expect(JSON.parse(asked.pop()?.body ?? '')).toEqual(sent);
      if (isElsewhere !== true && value !== null) expect(asset).toMatchObject(sent);
    }
    for (const value of [...refused, ...byClient]) {
      const error = await failure(client.assets.update('L-1', { [name]: value }), 'secret');
      expect(error, String(value)).toMatchObject({ code: 'USAGE', exitCode: 2, retryable: false });
      expect(error.message).toMatch(new RegExp(`^the asset: ${name}(\\[|\\.|: )`));
      expect(error.message).toContain(must);
      expect(error.hint).toMatch(/\.$/);
    }
    expect(asked).toEqual([]);
    const service = await talk(() => ({ status: 422, body: { errors: [`${name}: must be something else`] } }));
    for (const value of byService) {
      const error = await failure(service.client.assets.update('L-1', { [name]: value }));
      expect(error).toMatchObject({ code: 'SERVICE_INVALID', message: expect.stringContaining(`${name}: must`) });
    }
    expect(service.asked).toHaveLength(byService.length);
  }
});
