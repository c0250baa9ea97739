// @module-tag service

import { type AccountOptions, createAccounts, type User } from '@catchword/sandbox/accounts/accounts';
import fc from 'fast-check';
import { expect, it } from 'vitest';

const OPTIONS: AccountOptions = {
  seed: 1,
  series: 1,
  prefix: 'user-',
  users: 1e3,
  reader: { reference: 'reader', accessToken: 'readertoken' },
};

function must(user: User | null | undefined): User {
  if (user === null || user === undefined) throw new Error('the user was not found');
  return user;
}

it('the list of users finds users by reference, guid, email and token, even among a million', () => {
  const accounts = createAccounts({ ...OPTIONS, users: 1_000_000 });
  for (const reference of ['reader', 'user-0000001', 'user-0500000', 'user-1000000']) {
    const user = must(accounts.byReference(reference));
    expect(user.reference).toBe(reference);
    expect(accounts.byGuid(user.guid)).toEqual(user);
    expect(accounts.byEmail(user.email.toUpperCase())).toEqual(user);
    expect(accounts.byToken(user.accessToken)).toEqual({ user, state: 'valid' });
  }
  const none = ['user-1000001', 'user-0000000', 'user-1', 'user-', 'user-0000001 ', 'user-1e3', 'USER-0000001', ''];
  expect(none.filter((reference) => accounts.byReference(reference) !== null)).toEqual([]);
});

// @rule 5-4
it('the list of users gives each user a guid and a token with the characters of section 5', () => {
  const accounts = createAccounts(OPTIONS);
  const users = Array.from({ length: 1000 }, (_, at) =>
    must(accounts.byReference(`user-${String(at + 1).padStart(7, '0')}`)),
  );
  expect(new Set(users.map(({ guid }) => guid)).size).toBe(1000);
  expect(new Set(users.map(({ accessToken }) => accessToken)).size).toBe(1000);
  expect(users.every(({ guid }) => /^[0-9A-Z]{20}$/.test(guid))).toBe(true);
  expect(users.every(({ accessToken }) => /^[0-9a-z]{34}$/.test(accessToken))).toBe(true);
});

it('the list of users creates the same users for the same seed, and others for another', () => {
  const [one, same, otherSeed, otherKey] = [{}, {}, { seed: 2 }, { series: 2 }].map((more) =>
    must(createAccounts({ ...OPTIONS, ...more }).byReference('user-0000001')),
  );
  expect(same).toEqual(one);
  expect(otherSeed?.guid).not.toBe(one?.guid);
  expect(otherKey?.guid).not.toBe(one?.guid);
  expect(otherKey?.accessToken).not.toBe(one?.accessToken);
});

it('the list of users finds no user by a guid or token that was not given out', () => {
  const accounts = createAccounts(OPTIONS);
  const { guid, accessToken } = must(accounts.byReference('user-0000001'));
  for (const text of [guid, accessToken]) {
    for (let at = 0; at < text.length; at++) {
      const wrong = `${text.slice(0, at)}${text[at] === '7' ? '8' : '7'}${text.slice(at + 1)}`;
      expect([accounts.byGuid(wrong), accounts.byToken(wrong)]).toEqual([null, null]);
    }
  }
  fc.assert(
    fc.property(fc.string(), (text) => {
      expect(accounts.byToken(text)).toBeNull();
      expect(accounts.byGuid(text)).toBeNull();
      expect(accounts.byEmail(text)).toBeNull();
    }),
  );
});

it('the list of users accepts a chosen guid, token and email, and names the field that is taken', () => {
  const accounts = createAccounts(OPTIONS);
  const mine = { reference: 'mine', email: 'Me@Example.com', guid: 'MYGUID00', accessToken: 'mytoken0' };
  expect(accounts.taken(mine)).toBeNull();
  const user = accounts.create(mine);
  expect(user).toMatchObject(mine);
  expect(accounts.byGuid('MYGUID00')).toEqual(user);
  expect(accounts.byEmail('me@example.com')).toEqual(user);
  expect(accounts.byToken('mytoken0')).toEqual({ user, state: 'valid' });
  const initial = must(accounts.byReference('user-0000001'));
  expect(accounts.taken({ reference: 'user-0000001' })).toBe('reference');
  expect(accounts.taken({ email: 'ME@example.com' })).toBe('email');
  expect(accounts.taken({ email: initial.email })).toBe('email');
  expect(accounts.taken({ guid: initial.guid })).toBe('guid');
  expect(accounts.taken({ accessToken: initial.accessToken })).toBe('accessToken');
});

it.each(['reader', 'user-0000007', 'created'])(
  'a reset of %s gives a new token and makes all earlier ones stale',
  (reference) => {
    const accounts = createAccounts(OPTIONS);
    accounts.create({ reference: 'created' });
    const tokens = [must(accounts.byReference(reference)).accessToken];
    for (let times = 0; times < 3; times++) {
      // The first, stale token still shows who asks.
      const holder = must(accounts.byToken(tokens[0] ?? '')?.user);
      tokens.push(accounts.reset(holder).accessToken);
    }
    expect(new Set(tokens).size).toBe(4);
    expect(tokens.map((token) => accounts.tokenState(token))).toEqual(['stale', 'stale', 'stale', 'valid']);
    expect(must(accounts.byReference(reference)).accessToken).toBe(tokens[3]);
    expect(accounts.tokenState('never')).toBe('unknown');
  },
);

it('the list of users does not know the token of a future reset', () => {
  const [now, later] = [createAccounts(OPTIONS), createAccounts(OPTIONS)];
  const next = later.reset(must(later.byReference('user-0000001'))).accessToken;
  expect(now.tokenState(next)).toBe('unknown');
});

it('the list of users does not accept a generated token for a user who has a chosen one', () => {
  const accounts = createAccounts(OPTIONS);
  const made = createAccounts({ ...OPTIONS, reader: { reference: 'reader' } });
  expect(accounts.tokenState(must(made.byReference('reader')).accessToken)).toBe('unknown');
});

it('the list of users does not find a user with a chosen guid by the generated one', () => {
  const reader = { reference: 'reader', guid: 'READERGUID' };
  const accounts = createAccounts({ ...OPTIONS, reader });
  const made = must(createAccounts(OPTIONS).byReference('reader')).guid;
  expect([accounts.byGuid(made), accounts.byGuid('READERGUID')?.reference]).toEqual([null, 'reader']);
});
