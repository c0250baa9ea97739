import { CatchwordError, remedyOf } from '@catchword/base/errors';
import { expect, it } from 'vitest';

const error = new CatchwordError('SOURCE_UNAVAILABLE', 'refused', {
  hint: 'Check {setting}.',
  setting: 'CATCHWORD_BASE_URL',
  status: 503,
  retryAfterMs: 5,
});

it('CatchwordError names its setting in the hint', () => {
  expect(error).toMatchObject({ setting: 'CATCHWORD_BASE_URL', hint: 'Check CATCHWORD_BASE_URL.' });
});

it('CatchwordError can be copied with another name of its setting', () => {
  const copy = error.with({ setting: 'baseUrl' });
  expect(copy).toMatchObject({ setting: 'baseUrl', hint: 'Check baseUrl.', status: 503, retryAfterMs: 5 });
  expect(copy).toMatchObject({ code: 'SOURCE_UNAVAILABLE', message: 'refused', retryable: true, exitCode: 75 });
});

it('CatchwordError can be copied as final, with another code and message', () => {
  expect(error.with({ retryable: false })).toMatchObject({ retryable: false, exitCode: 1, status: 503 });
  expect(error.with({ code: 'SERVICE_ERROR', message: 'no' })).toMatchObject({
    code: 'SERVICE_ERROR',
    message: 'no',
  });
});

it('an error without a hint has the remedy of the documents, if they have one', () => {
  expect(remedyOf('SERVICE_FORBIDDEN')).toBe('Ask the service for the permission.');
  expect(remedyOf('MIRROR_UNUSABLE')).toBe('If the file is damaged: see docs/backup.md.');
  expect(remedyOf('NOT_FOUND')).toBeUndefined();
});
