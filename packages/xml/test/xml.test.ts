// @module-tag service

import { readXml } from '@catchword/xml/read';
import { writeXml } from '@catchword/xml/write';
import { parseXml } from '@rgrove/parse-xml';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

const WRITABLE = /^[\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]*$/u;

function withoutHead(text: string): string {
  return text.trim().replace(/^<\?xml\s[^<>]*\?>/, '');
}

describe('written XML', () => {
  it('written XML is parsed back to the same value', { tags: ['slow'] }, () => {
    const value = fc.string({ unit: 'binary' }).filter((text) => WRITABLE.test(text));
    fc.assert(
      fc.property(value, value, (attribute, text) => {
        const [root] = readXml(writeXml({ name: 'a', attributes: { 'b-c': attribute }, content: text }));
        expect(root?.attributes.get('b-c')).toBe(attribute);
        expect(root?.text).toBe(text.trim());
      }),
    );
  });

  it('rejects characters and names that are not allowed in XML', () => {
    for (const value of ['\u0000', 'a\u0008', '\ud800', '\uffff']) {
      expect(() => writeXml({ name: 'user', attributes: { reference: value } })).toThrow(
        expect.objectContaining({
          code: 'USAGE',
          message: 'user reference has a character that is not allowed in XML',
        }),
      );
    }
    expect(() => writeXml({ name: 'a b' })).toThrow('not a valid name');
    expect(() => writeXml({ name: 'a', attributes: { 'b="': '' } })).toThrow('not a valid name');
  });
});

describe('parsed XML', () => {
  it('parsed XML is the same in any order, with or without end tags, comments and white space', () => {
    const expected = readXml('<r><e a="1" b="2"/></r>');
    for (const text of [
      '\ufeff<?xml version="1.0" encoding="utf-8"?>\n<r>\n  <e b="2" a="1"></e>\n</r>\n',
      "<!-- hello --><r><!-- there --><e\n a='1'\tb='2' /></r>",
    ]) {
      expect(readXml(text)).toEqual(expected);
    }
  });

  it('XML may be without its root, or empty', () => {
    expect(readXml('<e a="1"/><e a="2"/>').map(({ attributes }) => attributes.get('a'))).toEqual(['1', '2']);
    expect(readXml(' \n')).toEqual([]);
  });

  it('normalizes line breaks, but not references to them', () => {
    const text = 'a\r\nb\rc\nd<![CDATA[\r\n]]>e&#13;f';
    expect(readXml(`<r>${text}</r>`)[0]?.text).toBe('a\nb\nc\nd\ne\rf');
  });

  it('XML may have as many elements, attributes and references as ten thousand credentials', () => {
    const one = '<credential reference="T &amp; &quot;J&quot;" guid="1" access-token="x=" email="a" status="b"/>';
    expect(readXml(`<credentials>${one.repeat(10_000)}</credentials>`)[0]?.children).toHaveLength(10_000);
    const twice = '<credential reference="r" guid="1" access-token="x" email="" email_verified="false"></credential>';
    expect(readXml(`<credentials>${twice.repeat(20_000)}</credentials>`)[0]?.children).toHaveLength(20_000);
  });

  it('XML is accepted exactly if the parser accepts it', () => {
    const tags =
      '<a>|</a>|<b c="d"/>|<b c=\'>\' d = "\'" />|<a b="" b="">|<a b=""c="">|<a b>|<a b=c>|</ a>|</a >|</a b="">';
    const odd =
      '<é/>|<1/>|<a b="<"/>|<a b="&"/>|<a:b/>|<a é="é"/>|<a xml:space="x"/>|<a xml:space="default"/>|<a b="" b=""/>';
    const spaces = '<a\u00a0b=""/>|<a b\u2028=""/>|<a b=\ufeff""/>|<a\u3000/>|<?x\u00a0y?>|<a\tb\n=\r""/>';
    const references =
      '&|;|amp|&amp;|&x;|&#65;|&#0;|&#x1F600;|&#xD800;|&#x110000;|&#65|&#;|&AMP;|&Lt;|&#X41;|&#x4a;|&#x4A;|<a b="&GT;"/>';
    const others =
      '<!-- <a> -->|<!-- -- -->|<![CDATA[ & <a> ]]>|<?x y?>|<?xml version="1.0"?>|<?x?>|<?XML?>|<?Xml-a b?>|<?\u00b5?>';
    const parts = '<a|<a/|/>|>|<|"|=|<!--|-->|<![CDATA[|]]>|<?x|?>| |\n|text|\u0000|\ud800|\u00a0';
    const pieces = [tags, odd, spaces, references, others, parts].flatMap((list) => list.split('|'));
    const taken = (read: () => unknown): boolean => {
      try {
        read();
        return true;
      } catch {
        return false;
      }
    };
    const document = fc.array(fc.constantFrom(...pieces), { maxLength: 5 }).map((parts) => parts.join(''));
    fc.assert(
      fc.property(document, (text) => {
        expect(
          taken(() => readXml(text)),
          text,
        ).toBe(taken(() => parseXml(`<top>${withoutHead(text)}</top>`)));
      }),
      { numRuns: 5_000 },
    );
  });

  it('XML is rejected with a short error', () => {
    const name = 'N'.repeat(60_000);
    for (const text of [`<a b="&${name};"/>`, `<a><${name}></a>`, `<a ${name}="" ${name}=""/>`, `<?${name}`]) {
      expect(() => readXml(text)).toThrow(/^.{20,200}$/);
    }
  });

  it.each([
    [
      'too many attributes',
      `<r>${`<e ${Array.from({ length: 5_000 }, (_, i) => `a${i}=""`).join(' ')}/>`.repeat(50)}</r>`,
    ],
    ['too many references', `<r>${`${'&#9;'.repeat(10_000)}<e/>`.repeat(20)}</r>`],
    ['too many characters', `<r>${`${'\r\n'.repeat(30_000)}<e/>`.repeat(120)}</r>`],
  ])('XML is rejected with %s', (_name, text) => {
    expect(() => readXml(text)).toThrow(expect.objectContaining({ code: 'XML_INVALID' }));
  });

  it('keeps names that JavaScript reserves', () => {
    const [root] = readXml('<r __proto__="x" constructor="y"/>');
    expect([...(root?.attributes ?? [])]).toEqual([
      ['__proto__', 'x'],
      ['constructor', 'y'],
    ]);
  });

  it.each([
    ['not XML', 'hello & <goodbye'],
    ['an end tag too many', '</top><top>'],
    ['an undeclared entity', '<a>&xxe;</a>'],
    ['a DOCTYPE', '<!DOCTYPE a><a/>'],
    ['a DOCTYPE in other letters', '<!doctype a><a/>'],
  ])('readXml rejects %s', (_, text) => {
    expect(() => readXml(text)).toThrow(expect.objectContaining({ code: 'XML_INVALID' }));
  });

  it('an error does not repeat rejected text', () => {
    expect(() => readXml('<a access-token="s3cr3t"><b></a>')).toThrow(/not well-formed/);
    expect(() => readXml('<a access-token="s3cr3t"><b></a>')).not.toThrow(/s3cr3t/);
  });
});
