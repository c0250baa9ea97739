import { type Ask, errorXml, golden, type Row } from './row.ts';

/* Users (4.5), credentials (2.4, 4.3) and licenses (2.3, 4.2): XML, to the byte. */

const user = (reference: string | undefined, email: string, guid: string, access_token: string): Ask => [
  'POST /_sandbox/user',
  { reference, email, guid, access_token },
];
const READER = 'f7d2k9s4m1x8q3w6v5t0z2b7n4c9g1h3';
const LEFT = 'a0a1a2a3a4a5a6a7a8a9b0b1b2b3b4b5';
/** The users of the golden files. The token of `left` is stale. */
const USERS: readonly Ask[] = [
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

/** What `reader-1` is answered about licenses. */
function licenses(rules: string, says: string, query: string, more: Pick<Row, 'reply' | 'call' | 'makes'>): Row {
  return { rules, says, given: LICENSES, asks: [`GET /v3/licenses.xml${query}`], token: READER, ...more };
}

/** An error inside a 200 of an operation that reads licenses. */
function failing(rules: string, says: string, last: Ask, code: number, fails: object): Row {
  const given = [...USERS, last];
  const [asks, reply]: [Ask, string] = [['GET /v3/licenses.xml'], golden(`error-${code}`)];
  const call: Row['call'] = ({ licenses }) => licenses.read();
  return { rules, says, given, asks, token: READER, reply, call, fails: { serviceCode: code, status: 200, ...fails } };
}

const CREDENTIALS = 'POST /v3/credentials.xml';

/** A request for one account, which is answered with an error in the place of its credential. */
function refused(rules: string, says: string, attributes: string, error: string, more: Partial<Row>): Row {
  return {
    rules,
    says,
    asks: [CREDENTIALS, golden('credentials-one-request').replace('reference="reader-1"', attributes)],
    reply: `<credentials><error ${error} email=""></error></credentials>`,
    ...more,
  };
}

const UNKNOWN = 'code="603" message="The reference value does not exist"';

/** A new user whom the service rejects. */
function rejected(rules: string, says: string, status: number, fields: string, code: number, text: string): Row {
  const given: Ask = ['POST /v3/users.xml', '<user><reference>taken</reference><email>a@example.com</email></user>'];
  return { rules, says, given: [given], asks: ['POST /v3/users.xml', fields], status, reply: errorXml(code, text) };
}

const xml = (content: string): string => `<?xml version="1.0" encoding="UTF-8"?>\n<user>${content}</user>`;
const NAMES = '<first-name>A</first-name><last-name>B</last-name>';
const PUPIL: Ask = [
  'POST /_sandbox/user',
  {
    reference: 'pupil-7',
    email: 'pupil-7@example.com',
    first_name: 'Élodie',
    last_name: 'Dubois & Fils',
    guid: '5N8C3DGK7Q2M9XW4TZ1B',
    access_token: 'q2x8w4t6z1b5n0c3d7g2h8j4p6k3m9v7',
  },
];
const PUPIL_READ = {
  email: 'pupil-7@example.com',
  firstName: 'Élodie',
  lastName: 'Dubois & Fils',
  reference: 'pupil-7',
  guid: '5N8C3DGK7Q2M9XW4TZ1B',
  accessToken: 'q2x8w4t6z1b5n0c3d7g2h8j4p6k3m9v7',
  others: {},
};

export const ACCOUNTS: readonly Row[] = [
  licenses('4.2-2, 4.2-5, 4.2-7', 'a title without a license has no element', '?sku=9780000000033', {
    reply: golden('licenses-none'),
    call: ({ licenses }) => licenses.read({ sku: '9780000000033' }),
    makes: { licenses: [] },
  }),
  licenses(
    '2.3-1..6, 3-2, 4.2-1..2, 4.2-4..5, 4.2-7, 9-1, 9-3',
    'a license has eleven attributes, and the counts of the account',
    '?sku=9780000000019',
    {
      reply: golden('licenses-one'),
      call: ({ licenses }) => licenses.read({ sku: '9780000000019' }),
      makes: { licenses: [ONE], distributable: 1, total: 3 },
    },
  ),
  licenses('4.2-3', 'all types are the same as none', '?sku=9780000000019&license_type=all', {
    reply: golden('licenses-one'),
    call: ({ licenses }) => licenses.read({ sku: '9780000000019', type: 'all' }),
    makes: { licenses: [ONE] },
  }),
  licenses('2.3-2..4, 4.2-8', 'both types of a title are two elements, expired or not', '?sku=9780000000026', {
    reply: golden('licenses-two'),
    call: ({ licenses }) => licenses.read({ sku: '9780000000026' }),
    makes: { licenses: [ONLINE, EXPIRED], distributable: 1, total: 3 },
  }),
  licenses('4.2-6', 'without a query, all licenses of the account are listed', '', {
    reply: golden('licenses-one')
      .replace(/(?=<summary)/, /<license .*(?=<summary)/.exec(golden('licenses-two'))?.[0] ?? '')
      .replace('distributable_products="1"', 'distributable_products="2"'),
    call: ({ licenses }) => licenses.read(),
    makes: { licenses: [ONE, ONLINE, EXPIRED], distributable: 2, total: 3 },
  }),
  failing(
    '4.2-9, 7-1',
    'an error may be inside a 200',
    ['POST /_sandbox/fail', { reference: 'reader-1', code: 469 }],
    469,
    {
      code: 'SERVICE_ERROR',
    },
  ),
  failing(
    '4.2-9, 7-1',
    'an unknown user may be inside a 200',
    ['POST /_sandbox/fail', { reference: 'reader-1', code: 474 }],
    474,
    {
      code: 'SERVICE_UNKNOWN_USER',
    },
  ),
  failing('5-7, 7-5, 7-7', 'a stale token yields 601', ['POST /_sandbox/expire', { reference: 'reader-1' }], 601, {
    code: 'SERVICE_TOKEN',
    exitCode: 2,
    setting: 'reference',
  }),
  {
    rules: '2.4-1, 4.3-1..6, 4.3-9..10, 7-5..6, 9-3',
    says: 'credentials, good and failed, are in the order of the request',
    given: USERS,
    asks: [CREDENTIALS, golden('credentials-request')],
    reply: golden('credentials-response'),
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
  {
    rules: '4.3-9',
    says: 'a reference user is verified by its reference alone',
    given: USERS,
    asks: [CREDENTIALS, golden('credentials-one-request')],
    reply: golden('credentials-one-response'),
    call: ({ credentials }) => credentials.verify(['reader-1']),
    makes: [{ ok: true, guid: '4T6Z1B5N0C3D7G2H8J4P', accessToken: READER }],
  },
  refused(
    '4.3-2, 4.3-8, 5-6',
    'a user of another key is unknown by its reference',
    'reference="user-0000001"',
    `${UNKNOWN} reference="user-0000001" guid=""`,
    {
      key: 'OTHERKEY',
      call: ({ credentials }) => credentials.verify(['user-0000001']),
      makes: [{ ok: false, code: 603 }],
    },
  ),
  refused(
    '4.3-8, 5-6',
    'a user of another key is unknown by its token, which is not repeated',
    'access-token="othersandboxtoken"',
    'code="603" message="The attributes name no user, or more than one" reference="" guid=""',
    {
      call: ({ credentials }) => credentials.verify([{ accessToken: 'othersandboxtoken' }]),
      makes: [{ ok: false, code: 603, reference: null }],
    },
  ),
  {
    rules: '4.5-8, 9-3',
    says: 'a user is created with a reference',
    asks: ['POST /v3/users.xml', golden('user-reference-request')],
    reply: golden('user-reference-response'),
    generated: ['email', 'guid', 'access-token'],
    call: ({ users }) => users.create({ reference: 'pupil-7', firstName: 'Élodie', lastName: 'Dubois & Fils' }),
    makes: PUPIL_READ,
  },
  {
    rules: '4.5-8',
    says: 'a user is created with email and password, which is not returned',
    asks: ['POST /v3/users.xml', golden('user-full-request')],
    reply: golden('user-full-response'),
    generated: ['guid', 'access-token'],
    call: ({ users }) =>
      users.create({ email: 'ada@example.com', password: 'correct <horse>', firstName: 'Ada', lastName: 'Abernathy' }),
    makes: { email: 'ada@example.com', reference: null, guid: '1B5N8C3DGK7Q2M9XW4TZ' },
  },
  ...['pupil-7', '5N8C3DGK7Q2M9XW4TZ1B', 'pupil-7@example.com'].map(
    (id): Row => ({
      rules: '4.5-8',
      says: `a user is read by ${id}`,
      given: [PUPIL],
      asks: [`GET /v3/users.xml/${encodeURIComponent(id)}`],
      reply: golden('user-reference-response'),
      call: ({ users }) => users.read(id),
      makes: PUPIL_READ,
    }),
  ),
  {
    rules: '4.5-8, 7-7',
    says: 'a user that does not exist is answered with 404 and 474',
    asks: ['GET /v3/users.xml/nobody'],
    status: 404,
    reply: golden('error-474'),
    call: ({ users }) => users.read('nobody'),
    fails: { code: 'SERVICE_UNKNOWN_USER', serviceCode: 474, status: 404, exitCode: 1 },
  },
  {
    ...rejected('2.4-2', 'a reference is unique', 409, xml(`<reference>taken</reference>${NAMES}`), 904, ''),
    reply: golden('error-904'),
    call: ({ users }) => users.create({ reference: 'taken', firstName: 'A', lastName: 'B' }),
    fails: { code: 'SERVICE_INVALID', serviceCode: 904, status: 409 },
  },
  ...(
    [
      ['SANDBOX-USED', 469, 'The redemption code is already redeemed'],
      ['SANDBOX-FAILED', 470, 'The redemption failed'],
      ['NOSUCHCODE', 468, 'The redemption code is not valid'],
    ] as const
  ).map(
    ([redeemed, code, text]): Row => ({
      ...rejected('7-1, 7-7', `the code ${redeemed} is an error inside a 200`, 200, '', code, text),
      asks: [
        'POST /v3/users.xml',
        xml(`<reference>r</reference>${NAMES}<redemption-code>${redeemed}</redemption-code>`),
      ],
      call: ({ users }) =>
        users.create({ reference: 'r', firstName: 'A', lastName: 'B', others: { 'redemption-code': redeemed } }),
      fails: { code: 'SERVICE_ERROR', serviceCode: code, status: 200, retryable: false },
    }),
  ),
  rejected(
    '2.4-3',
    'an email needs a password',
    422,
    xml('<email>ada@example.com</email>'),
    650,
    'password: is required for a user without a reference',
  ),
];
