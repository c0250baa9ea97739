import fc from 'fast-check';

/*
 * Generates JSON as a source may write it: numbers of any length and spelling, keys in any order and repeated, strings
 * with unnecessary escapes. `fc.jsonValue` generates only values that JavaScript can represent.
 */

const digits = (maxLength: number) => fc.stringMatching(new RegExp(`^[0-9]{1,${maxLength}}$`));

/** A number as text: up to 64-bit identifiers, long fractions and exponents outside the range of a double. */
export const rawNumber = fc
  .record({
    sign: fc.constantFrom('', '-'),
    whole: fc.oneof(
      fc.constant('0'),
      digits(25).map((text) => text.replace(/^0+(?=.)/, '')),
    ),
    fraction: fc.option(digits(25), { nil: undefined }),
    power: fc.option(fc.tuple(fc.constantFrom('e', 'E'), fc.constantFrom('', '+', '-'), digits(3)), { nil: undefined }),
  })
  .map(({ sign, whole, fraction, power }) =>
    [sign, whole, fraction === undefined ? '' : `.${fraction}`, ...(power ?? [])].join(''),
  );

export const rawString = fc
  .array(fc.constantFrom('a', 'é', '😀', '\\n', '\\u0041', '\\/', '/', '\\"', '\\\\', '\\ud800', '{', ',', '1e400'), {
    maxLength: 5,
  })
  .map((parts) => `"${parts.join('')}"`);

const space = fc.constantFrom('', ' ', '\n\t');

/** A value, with at most `depth` levels of arrays and objects. */
export function rawValue(depth: number): fc.Arbitrary<string> {
  const scalar = fc.oneof(rawNumber, rawString, fc.constantFrom('true', 'false', 'null'));
  if (depth === 0) return scalar;
  const inner = rawValue(depth - 1);
  const array = fc.tuple(space, fc.array(inner, { maxLength: 3 })).map(([gap, items]) => `[${items.join(`,${gap}`)}]`);
  return fc.oneof({ weight: 3, arbitrary: scalar }, array, rawObject(depth - 1));
}

const key = fc.oneof(
  fc.constantFrom('"a"', '"\\u0061"', '"b"', '"d/e"', '"~f"', '"__proto__"', '"\\ud800"'),
  rawString,
);

/** An object whose members have at most `depth` levels. */
export function rawObject(depth: number): fc.Arbitrary<string> {
  return fc
    .tuple(space, fc.array(fc.tuple(key, rawValue(depth)), { maxLength: 5 }))
    .map(
      ([gap, members]) => `{${gap}${members.map(([name, value]) => `${name}${gap}:${gap}${value}`).join(`,${gap}`)}}`,
    );
}

/** The exact value of a number, in units of 10^-2000. */
export function exactValue(number: string): bigint {
  const [, sign = '', whole = '', fraction = '', power = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(number) ?? [];
  return BigInt(`${sign}${whole}${fraction}`) * 10n ** (BigInt(power) - BigInt(fraction.length) + 2_000n);
}
