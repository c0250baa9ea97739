import type { Client } from '../../src/client/client.ts';
import { type Ask, golden, type Row, row } from './row.ts';

/* Users (4.5), credentials (2.4, 4.3) and licenses (2.3, 4.2): XML, to the byte. */

const user = (reference: string | undefined, email: string, guid: string, access_token: string): Ask => [
  'POST /_sandbox/user',
  { reference, email, guid, access_token },
];
const READER = 'f7d2k9s4m1x8q3w6v5t0z2b7n4c9g1h3';
const LEFT = 'a0a1a2a3a4a5a6a7a8a9b0b1b2b3b4b5';
/** The users of the golden files. The token of `left` is stale. */
export const USERS: readonly Ask[] = [
  user('reader-1', 'reader-1@example.com', '4T6Z1B5N0C3D7G2H8J4P', READER),
  user(undefined, 'full.user@example.com', '7Q2M9XW4TZ1B5N8C3DGK', 'p6j4h8g2d7c3n0b5z1t6w4x8q2v7m9k3'),
  user('reader-2', 'reader-2@example.com', '9V7Q2X8W4T6Z1B5N0C3D', 'k3m9v7q2x8w4t6z1b5n0c3d7g2h8j4p6'),
  user('Tom & "Jerry" <é>', 'tom@example.com', '2H8J4P6K3M9V7Q2X8W4T', 'z1b5n0c3d7g2h8j4p6k3m9v7q2x8w4t6'),
  user('left', 'left@example.com', 'LEFTLEFT', LEFT),
  ['POST /_sandbox/expire', { reference: 'left' }],
];

const grant = (sku: string, more: object): Ask => [
  'POST /_sandbox/grant',
  { reference: 'reader-1', sku, isbn: sku, kind: 'book', ...more },
];
const HYDROLOGY = { imprint: 'Harbour Lane', publisher: 'Harbour Lane Press', name: 'Elements of Hydrology' };
const PAST = 'Thu, 10 Mar 2016 22:14:54 GMT';
const BOTANY = { imprint: 'Quill', publisher: 'Quill & Anchor', name: 'Principles of <Botany>' };
/** The licenses of the golden files. */
const LICENSES: readonly Ask[] = [
  ...USERS,
  grant('9780000000019', { ...BOTANY, type: 'downloadable', expiration: 'never', code_use: 'code-api' }),
  grant('9780000000026', { ...HYDROLOGY, type: 'online', term: '180', code_use: 'add-drop', expiration: '2099-12-31' }),
  grant('9780000000026', { ...HYDROLOGY, type: 'downloadable', code_use: 'p+e', expiration: PAST }),
];

const ONE = {
  sku: '9780000000019',
  type: 'downloadable',
  expiration: 'never',
  expiresAt: null,
  kind: 'book',
  imprint: 'Quill',
  publisher: 'Quill & Anchor',
  name: 'Principles of <Botany>',
  isbn: '9780000000019',
  partOf: null,
  term: null,
  codeUse: 'code-api',
  others: {},
};
const ONLINE = { type: 'online', expiresAt: Date.UTC(2100, 0, 1), term: '180', codeUse: 'add-drop' };
const EXPIRED = { type: 'downloadable', expiration: PAST, expiresAt: Date.parse(PAST), term: null, codeUse: 'p+e' };

const OF_READER = { token: READER };
/** The licenses for a query of `reader-1`. */
function licenses(title: string, query: string, reply: string, makes: object): Row {
  return row(title, [...LICENSES, [`GET /v3/licenses.xml${query}`]], reply, { ...OF_READER, makes });
}

/** An error inside a 200, after a control of the sandbox. */
function failing(title: string, control: string, code: number, fails: object): Row {
  const arranged: Ask = [`POST /_sandbox/${control}`, { reference: 'reader-1', ...(control === 'fail' && { code }) }];
  const more = { ...OF_READER, fails: { serviceCode: code, ...fails } };
  return row(title, [...USERS, arranged, ['GET /v3/licenses.xml']], golden(`error-${code}`), more);
}

const ALL_LICENSES = golden('licenses-one')
  .replace(/(?=<summary)/, /<license .*(?=<summary)/.exec(golden('licenses-two'))?.[0] ?? '')
  .replace('distributable_products="1"', 'distributable_products="2"');

const CREDENTIALS = 'POST /v3/credentials.xml';
type Submission = Parameters<Client['credentials']['verify']>[0][number];

/** A request for one account, which is answered with an error in the place of its credential. */
function refused(
  title: string,
  attribute: string,
  error: string,
  submission: Submission,
  more: Partial<Row> = {},
): Row {
  const body = golden('credentials-one-request').replace('reference="reader-1"', attribute);
  const call: Row['call'] = ({ credentials }) => credentials.verify([submission]);
  const reply = `<credentials><error code="603" message="${error}" guid="" email=""></error></credentials>`;
  return row(title, [[CREDENTIALS, body]], reply, { call, makes: [{ ok: false, code: 603 }], ...more });
}

const userXml = (content: string): string => `<?xml version="1.0" encoding="UTF-8"?>\n<user>${content}</user>`;
const NAMES = '<first-name>A</first-name><last-name>B</last-name>';
const TAKEN: Ask = ['POST /v3/users.xml', '<user><reference>taken</reference></user>'];

/** A redemption code that is an error inside a 200. */
function redeemed(code: string, serviceCode: number, text: string): Row {
  const asks: Ask = [
    'POST /v3/users.xml',
    userXml(`<reference>r</reference>${NAMES}<redemption-code>${code}</redemption-code>`),
  ];
  const user = { reference: 'r', firstName: 'A', lastName: 'B', others: { 'redemption-code': code } };
  const reply = `<error-response><error-code>${serviceCode}</error-code><error-text>${text}</error-text></error-response>`;
  const fails = { code: 'SERVICE_ERROR', serviceCode };
  return row(`7-1, 7-7: the code ${code} is an error`, [asks], reply, {
    call: ({ users }) => users.create(user),
    fails,
  });
}

const PUPIL = { reference: 'pupil-7', firstName: 'Élodie', lastName: 'Dubois & Fils' };
const PUPIL_READ = {
  ...PUPIL,
  email: 'pupil-7@example.com',
  guid: '5N8C3DGK7Q2M9XW4TZ1B',
  accessToken: 'q2x8w4t6z1b5n0c3d7g2h8j4p6k3m9v7',
  others: {},
};
const MAKE_PUPIL: Ask = [
  'POST /_sandbox/user',
  {
    reference: PUPIL.reference,
    first_name: PUPIL.firstName,
    last_name: PUPIL.lastName,
    email: PUPIL_READ.email,
    guid: PUPIL_READ.guid,
    access_token: PUPIL_READ.accessToken,
  },
];
const ADA = { email: 'ada@example.com', password: 'correct <horse>', firstName: 'Ada', lastName: 'Abernathy' };

export const ACCOUNTS: readonly Row[] = [
  licenses('4.2-2, 4.2-5, 4.2-7: a title without a license', '?sku=9780000000033', golden('licenses-none'), {
    licenses: [],
  }),
  licenses('4.2-2: a SKU may have any character', '?sku=L-999+70031%26x', golden('licenses-none'), { licenses: [] }),
  licenses(
    '2.3-1..6, 3-2, 4.2-1..2, 4.2-4..5, 4.2-7, 9-1, 9-3: a license has eleven attributes, and the counts of the account',
    '?sku=9780000000019',
    golden('licenses-one'),
    { licenses: [ONE], distributable: 1, total: 3 },
  ),
  licenses('4.2-3: all types', '?sku=9780000000019&license_type=all', golden('licenses-one'), { licenses: [ONE] }),
  licenses('4.2-3: one type', '?sku=9780000000019&license_type=online', golden('licenses-none'), { licenses: [] }),
  licenses('2.3-2..4, 4.2-8: both types of a title, one expired', '?sku=9780000000026', golden('licenses-two'), {
    licenses: [ONLINE, EXPIRED],
    distributable: 1,
    total: 3,
  }),
  licenses('4.2-6: all licenses of the account', '', ALL_LICENSES, {
    licenses: [ONE, ONLINE, EXPIRED],
    distributable: 2,
  }),
  failing('4.2-9, 7-1: an error may be inside a 200', 'fail', 469, { code: 'SERVICE_ERROR' }),
  failing('4.2-9, 7-1: an unknown user may be inside a 200', 'fail', 474, { code: 'SERVICE_UNKNOWN_USER' }),
  failing('5-7, 7-5, 7-7: a stale token yields 601', 'expire', 601, { code: 'SERVICE_TOKEN', setting: 'reference' }),
  row(
    '2.4-1, 4.3-1..6, 4.3-9..10, 7-5..6, 9-3: credentials, good and failed, are in the order of the request',
    [...USERS, [CREDENTIALS, golden('credentials-request')]],
    golden('credentials-response'),
    {
      call: ({ credentials }) =>
        credentials.verify([
          'reader-1',
          { guid: '7Q2M9XW4TZ1B5N8C3DGK' },
          { accessToken: 'k3m9v7q2x8w4t6z1b5n0c3d7g2h8j4p6' },
          { reference: 'reader-1', accessToken: READER },
          'Tom & "Jerry" <é>',
          'unknown & co',
          { accessToken: LEFT },
        ]),
      makes: [
        { ok: true, reference: 'reader-1', guid: '4T6Z1B5N0C3D7G2H8J4P', email: 'reader-1@example.com', others: {} },
        { ok: true, reference: null, accessToken: 'p6j4h8g2d7c3n0b5z1t6w4x8q2v7m9k3' },
        { ok: true, reference: 'reader-2', accessToken: 'k3m9v7q2x8w4t6z1b5n0c3d7g2h8j4p6' },
        { ok: true, reference: 'reader-1', accessToken: READER },
        { ok: true, reference: 'Tom & "Jerry" <é>', accessToken: 'z1b5n0c3d7g2h8j4p6k3m9v7q2x8w4t6' },
        { ok: false, reference: 'unknown & co', code: 603, message: 'The reference value does not exist' },
        { ok: false, reference: null, code: 601 },
      ],
    },
  ),
  row(
    '4.3-9: a reference user is verified by its reference alone',
    [...USERS, [CREDENTIALS, golden('credentials-one-request')]],
    golden('credentials-one-response'),
    { call: ({ credentials }) => credentials.verify(['reader-1']), makes: [{ ok: true, accessToken: READER }] },
  ),
  refused(
    '4.3-2, 4.3-8, 5-6: a user of another key is unknown by its reference',
    'reference="user-0000001"',
    'The reference value does not exist" reference="user-0000001',
    'user-0000001',
    { key: 'OTHERKEY' },
  ),
  refused(
    '4.3-8, 5-6: a user of another key is unknown by its token, which is not repeated',
    'access-token="othersandboxtoken"',
    'The attributes name no user, or more than one" reference="',
    { accessToken: 'othersandboxtoken' },
  ),
  row(
    '4.5-8, 9-3: a user is created with a reference',
    [['POST /v3/users.xml', golden('user-reference-request')]],
    golden('user-reference-response'),
    { generated: ['email', 'guid', 'access-token'], call: ({ users }) => users.create(PUPIL), makes: PUPIL_READ },
  ),
  row(
    '4.5-8: a user is created with email and password, which is not returned',
    [['POST /v3/users.xml', golden('user-full-request')]],
    golden('user-full-response'),
    {
      generated: ['guid', 'access-token'],
      call: ({ users }) => users.create(ADA),
      makes: { email: 'ada@example.com', reference: null, guid: '1B5N8C3DGK7Q2M9XW4TZ' },
    },
  ),
  ...['pupil-7', '5N8C3DGK7Q2M9XW4TZ1B', 'pupil-7@example.com'].map((id) => {
    const asks: readonly Ask[] = [MAKE_PUPIL, [`GET /v3/users.xml/${encodeURIComponent(id)}`]];
    return row(`4.5-8: a user is read by ${id}`, asks, golden('user-reference-response'), { makes: PUPIL_READ });
  }),
  row('4.5-8, 7-7: an unknown user is answered with 474', [['GET /v3/users.xml/none']], golden('error-474'), {
    status: 404,
    fails: { code: 'SERVICE_UNKNOWN_USER', serviceCode: 474 },
  }),
  row(
    '2.4-2: a reference is unique',
    [TAKEN, ['POST /v3/users.xml', userXml(`<reference>taken</reference>${NAMES}`)]],
    golden('error-904'),
    {
      status: 409,
      call: ({ users }) => users.create({ reference: 'taken', firstName: 'A', lastName: 'B' }),
      fails: { code: 'SERVICE_INVALID', serviceCode: 904 },
    },
  ),
  redeemed('SANDBOX-USED', 469, 'The redemption code is already redeemed'),
  redeemed('SANDBOX-FAILED', 470, 'The redemption failed'),
  redeemed('NOSUCHCODE', 468, 'The redemption code is not valid'),
];
