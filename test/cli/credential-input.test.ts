import { readXml } from '@catchword/xml/read';
import { writeXml } from '@catchword/xml/write';
import type { CredentialSubmission } from 'catchword-client/credentials/submission';
import { expect, it } from 'vitest';
import { submissionsIn } from '../../src/cli/commands/credentials/credential-input.ts';
import { expectUsage } from './credential-service.ts';

async function* inPieces(bytes: Buffer, length: number) {
  for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length);
}

async function read(path: string, content: string | Buffer, length = 1_000): Promise<CredentialSubmission[]> {
  const read: CredentialSubmission[] = [];
  for await (const submission of submissionsIn(path, inPieces(Buffer.from(content), length), false))
    read.push(submission);
  return read;
}

it.each<[string, string | Buffer]>([
  ['Excel, "CSV UTF-8"', '\ufeffreference,name\r\nreader-1,Müller\r\n"a, ""b""","two\nlines"\r\n'],
  ['Excel in Europe, "CSV UTF-8"', '\ufeffreference;name\r\nreader-1;Müller\r\n"a, ""b""";"two; or\nthree"\r\n'],
  ['Excel, "CSV"', Buffer.from('name;reference\r\nMüller;reader-1\r\nJos\xe9;"a, ""b"""\r\n', 'latin1')],
  ['Excel, "CSV (Macintosh)"', 'reference;name\rreader-1;M\rO"Neil;\r'.replace('O"Neil', '"a, ""b"""')],
  ['Excel, "Text (Tab delimited)"', 'Reference\tname\r\nreader-1\tMüller\r\n"a, ""b"""\tx\r\n'],
  ['LibreOffice', 'reference,name\nreader-1,Müller\n"a, ""b""","two\nlines"\n'],
  ['LibreOffice, all text quoted', '"name";"reference"\n"Müller; M.";"reader-1"\n"";"a, ""b"""\n'],
  [
    'Excel, with empty fields, rows and columns',
    ';;\r\nname;reference;\r\nM;reader-1;\r\n;;\r\n;"a, ""b""";;\r\n;;\r\n',
  ],
])('accounts in CSV are read as written by %s', async (_name, content) => {
  for (const length of [1, 7, 1_000]) {
    expect(await read('users.csv', content, length)).toEqual([{ reference: 'reader-1' }, { reference: 'a, "b"' }]);
  }
});

it.each([
  ['a row shorter than the header', 'reference,email\na\n'],
  ['empty fields at the end', 'reference,email\na,b,,\n'],
  ['a column without a name', 'reference,,\na,b,c\n'],
  ['two columns of the same name that is not a key', 'note,note,reference\nx,y,a\n'],
  ['one column and no line break at the end', 'reference\na'],
])('accounts in CSV may have %s', async (_name, text) => {
  expect(await read('users.csv', text)).toEqual([{ reference: 'a' }]);
});

it('accounts in CSV may be named by several keys, whatever the case of the columns', async () => {
  const rows = 'email,GUID,Access_Token,Reference\nx@y.z,g,t,r\n,,t2,\n';
  expect(await read('users.csv', rows)).toEqual([
    { reference: 'r', guid: 'g', accessToken: 't' },
    { accessToken: 't2' },
  ]);
});

it.each([
  ['NDJSON', '{"reference":"a"}\n"b"'],
  ['NDJSON after empty lines', '\n\n{"reference":"a"}\r\n\r\n{"reference":"b"}\r\n'],
  ['CSV', '"Reference","email"\na,\nb,\n'],
  ['CSV after an empty line', '\nreference\na\nb\n'],
])('accounts on stdin may be %s', async (_name, text) => {
  for (const length of [1, 1_000]) {
    expect(await read('-', text, length)).toEqual([{ reference: 'a' }, { reference: 'b' }]);
  }
});

it('accounts with the longest keys get an answer to a full batch that is not too long to read', {
  tags: ['slow'],
}, async () => {
  const submitted = await read('users.csv', `reference\n${`${'x'.repeat(255)}\n`.repeat(10_000)}`);
  const others = { guid: 'G'.repeat(36), email: 'e'.repeat(128), 'access-token': 't'.repeat(64) };
  const content = submitted.map(({ reference }) => ({ name: 'credential', attributes: { ...others, reference } }));
  expect(readXml(writeXml({ name: 'credentials', content }))[0]?.children).toHaveLength(10_000);
});

it.each<[string, string, string, RegExp, string?]>([
  ['a number', '{"reference":"a"}\n{"reference":123}\n', 'line 2: its reference is not a string', /quotes/],
  ['a control character', '"a"\n"b\\u0007"\n', 'line 2: its reference contains a character', /Remove control/],
  ['an account without a key', '"a"\n{}\n', 'line 2: the account has no key', /Fill in/],
  ['text that is not JSON', '"a"\n\nb\n', 'line 3: invalid JSON', /reader-1/],
  ['NDJSON under another name', '{"reference":"a"}\n', 'line 1 is not valid CSV', /quotes/, 'users.json'],
  ['strings under another name', '"a"\n"b"\n', 'line 1: no column is named', /\.ndjson/, 'users.txt'],
  ['a comma too many', 'reference,email\nr1,a@b.c\nr2,jr,x@y.z\n', 'line 3: 3 fields', /Quote/, 'users.csv'],
  ['fields without a column', 'reference\nr1,too,many\n', 'line 2: 3 fields', /Quote/, 'users.csv'],
  ['a key column twice', 'reference,name,Reference\na,b,c\n', 'columns are named ref', /Rename/, 'users.csv'],
  ['two token columns', 'access_token,access-token\na,b\n', 'line 1: two columns', /Rename/, 'users.csv'],
  ['two token fields', '{"access-token":"A","access_token":"B"}', 'line 1: two fields are named acc', /Rename/],
  ['a raw NUL', '{"reference":"a\0b"}\n', 'line 1: invalid JSON', /reader-1/],
  ['a NUL in CSV', 'reference\na\0b\n', 'line 2: its reference contains', /Remove/, 'users.csv'],
  ['a long key', `"a"\n"${'x'.repeat(256)}"\n`, 'line 2: its reference has 256 characters', /--force/],
  ['a quote in a field', 'reference\r\na"b"\r\n', 'line 2 is not valid CSV', /double/, 'users.csv'],
  ['a quote after a cell of two lines', 'reference,n\r\na,"x\r\ny"\r\n"b"c,d\r\n', 'line 4 is', /double/, 'users.csv'],
  ['a row without a key', 'reference,n\r\na,"x\r\ny"\r\n,d\r\n', 'line 4: the account', /Fill in/, 'users.csv'],
  ['an open quote', 'reference\na\n"b\nc\n', 'is not valid CSV', /close/, 'users.csv'],
  ['a long open quote', `reference\n"${'x'.repeat(2_000_000)}`, 'line 2 is longer than', /close/, 'users.csv'],
  ['a long line', `"a"\n"${'x'.repeat(2_000_000)}`, 'line 2 is longer than', /close/],
])('an error in the input names the line: %s', async (_name, content, message, hint, path = 'users.ndjson') => {
  await expectUsage(read(path, content), message, hint);
});

it.each<[string, Buffer, string]>([
  ['a Windows-1252 key', Buffer.from('reference\r\nMüller\r\n', 'latin1'), 'line 2: the text is not UTF-8'],
  ['Excel, "Unicode Text"', Buffer.from('\ufeffreference\r\na\r\n', 'utf16le'), 'line 1: no column is named'],
])('an error in the input asks for UTF-8: %s', async (_name, content, message) => {
  await expectUsage(read('users.csv', content), message, /UTF-8/);
});
