import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readXml } from '../../src/xml/read.ts';
import { writeXml } from '../../src/xml/write.ts';

const WRITABLE = /^[\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]*$/u;

describe('what is written', () => {
  it('is read again as it was, whatever it holds', () => {
    const value = fc.string({ unit: 'binary' }).filter((text) => WRITABLE.test(text));
    fc.assert(
      fc.property(value, value, (attribute, text) => {
        const [root] = readXml(writeXml({ name: 'a', attributes: { 'b-c': attribute }, content: text }));
        expect(root?.attributes.get('b-c')).toBe(attribute);
        expect(root?.text).toBe(text.trim());
      }),
    );
  });

  it('refuses what XML cannot hold, and says where', () => {
    for (const value of ['\u0000', 'a\u0008', '\ud800', '\uffff']) {
      expect(() => writeXml({ name: 'user', attributes: { reference: value } })).toThrow(
        expect.objectContaining({ code: 'USAGE', message: 'user reference holds a character that XML cannot hold' }),
      );
    }
    expect(() => writeXml({ name: 'a b' })).toThrow('no name');
    expect(() => writeXml({ name: 'a', attributes: { 'b="': '' } })).toThrow('no name');
  });
});

describe('what is read', () => {
  it('is the same in whatever order, with or without end tags, comments and white space', () => {
    const expected = readXml('<r><e a="1" b="2"/></r>');
    for (const text of [
      '\ufeff<?xml version="1.0" encoding="utf-8"?>\n<r>\n  <e b="2" a="1"></e>\n</r>\n',
      "<!-- hello --><r><!-- there --><e\n a='1'\tb='2' /></r>",
    ]) {
      expect(readXml(text)).toEqual(expected);
    }
  });

  it('may lack its root, or be empty', () => {
    expect(readXml('<e a="1"/><e a="2"/>').map(({ attributes }) => attributes.get('a'))).toEqual(['1', '2']);
    expect(readXml(' \n')).toEqual([]);
  });

  it('is the same with line breaks of any kind, and a reference to one stays what it is', () => {
    const text = 'a\r\nb\rc\nd<![CDATA[\r\n]]>e&#13;f';
    expect(readXml(`<r>${text}</r>`)[0]?.text).toBe('a\nb\nc\nd\ne\rf');
  });

  it('may have as many elements, attributes and references as ten thousand credentials', () => {
    const one = '<credential reference="T &amp; &quot;J&quot;" guid="1" access-token="x=" email="a" status="b"/>';
    expect(readXml(`<credentials>${one.repeat(10_000)}</credentials>`)[0]?.children).toHaveLength(10_000);
  });

  it.each([
    [
      'too many attributes',
      `<r>${`<e ${Array.from({ length: 5_000 }, (_, i) => `a${i}=""`).join(' ')}/>`.repeat(50)}</r>`,
    ],
    ['too many references', `<r>${`${'&#9;'.repeat(10_000)}<e/>`.repeat(20)}</r>`],
    ['too many characters', `<r>${`${'\r\n'.repeat(30_000)}<e/>`.repeat(120)}</r>`],
  ])('is refused with %s', (_name, text) => {
    expect(() => readXml(text)).toThrow(expect.objectContaining({ code: 'XML_INVALID' }));
  });

  it('keeps names that JavaScript knows', () => {
    const [root] = readXml('<r __proto__="x" constructor="y"/>');
    expect([...(root?.attributes ?? [])]).toEqual([
      ['__proto__', 'x'],
      ['constructor', 'y'],
    ]);
  });

  it.each([
    ['not XML', 'hello & <goodbye'],
    ['an end tag too many', '</top><top>'],
    ['an entity that nobody declared', '<a>&xxe;</a>'],
    ['a DOCTYPE', '<!DOCTYPE a><a/>'],
    ['a DOCTYPE in other letters', '<!doctype a><a/>'],
  ])('%s is refused', (_, text) => {
    expect(() => readXml(text)).toThrow(expect.objectContaining({ code: 'XML_INVALID' }));
  });

  it('repeats nothing of what it refuses', () => {
    expect(() => readXml('<a access-token="s3cr3t"><b></a>')).toThrow(/not well-formed/);
    expect(() => readXml('<a access-token="s3cr3t"><b></a>')).not.toThrow(/s3cr3t/);
  });
});
