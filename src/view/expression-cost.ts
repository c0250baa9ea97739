import type { Instruction, Program } from './sql-program.ts';

/*
 * How much text an expression reads and makes, in multiples of the product: calls alone say little, because the result of one
 * is an argument of the next one. The program is followed from its start, with the size of each register. Where branches meet,
 * the larger size counts. Sizes are bounds: a loop over elements is counted as all of its elements together.
 */

/** The size of a register: multiples of the product, and characters of literals. */
interface Size {
  readonly products: number;
  /** Characters of literals as JSON writes them. */
  readonly literal: number;
  /** Whether it is JSON that a JSON function made just before: another one takes it as it is, without escapes. */
  readonly isJson: boolean;
  /** Where the part of the product was written; of several places, the first. */
  readonly addr: number;
}

/** A product of 100 kB is one; it has at most half as many elements as characters. */
const CHARACTERS = 100_000;
const ELEMENTS = CHARACTERS / 2;
/** `json_each` may read a product in brackets, or `{}` instead of each element; more would have more elements than `ELEMENTS`. */
const MOST_LOOPED = { products: 1.01, literal: (JSON.stringify('{}').length * ELEMENTS) / CHARACTERS };
/** What a function adds to each argument for each element, such as quotes and a comma, or `null`, in characters. */
const AROUND_ARGUMENT = 4;
const ADDS = /^(json_(array|object|quote|group_array|group_object)|group_concat|string_agg)$/;
/**
 * What columns of `json_each` have of all elements together, in products; the others have one. `type`, `id` and `parent` are as
 * short as numbers. `fullkey`, `path` and `root` repeat the names on the way to an element, of some 60 characters.
 */
const COLUMN_PRODUCTS: Readonly<Record<number, number>> = { 2: 0, 4: 0, 5: 0, 6: 30, 7: 30, 9: 30 };
/** The longest text of a number, or of a type, in characters. */
const NUMBER_CHARACTERS = 24;
/** The longest that JSON writes for a byte, in characters: `\u0001`. */
const ESCAPED_BYTE = 6;

/** Functions that make JSON. An escaped text may be twice as long. */
const ESCAPES = /^json_(array|object|quote|insert|replace|set|group_array|group_object)$/;
/** Their results are JSON for another function of JSON. */
const MAKES_JSON = /^(->|json|json_remove)$/;
/** They return a part of their first argument for each path. */
const EXTRACTS = /^(->|->>|json_extract)$/;
/** How many arguments there are for each path, after the first argument, which is read for each path. */
const PATHS: Readonly<Record<string, number>> = {
  json_extract: 1,
  json_remove: 1,
  json_insert: 2,
  json_replace: 2,
  json_set: 2,
};
/** Results that do not grow with the arguments. */
const SHORT =
  /^(json_(array_length|type|valid)|abs|avg|ceil(ing)?|count|floor|glob|instr|length|like|octet_length|round|sign|sum|total|typeof|unicode)$/;

/** Functions that compare each character with a literal. So many characters of it cost as much as a reading (measured). */
const SEARCHES = /^(glob|instr|like|[lr]?trim)$/;
const SEARCHED_AT_ONCE = 5;

/** They read a text as a number; the result in `p3`, `p2` or nowhere is short. */
const ARITHMETIC = /^(Add|Subtract|Multiply|Divide|Remainder|BitAnd|BitOr|ShiftLeft|ShiftRight|And|Or)$/;
const UNARY = /^(Not|BitNot|IsTrue)$/;
const CONDITION = /^(If|IfNot|MustBeInt)$/;
const COMPARISON = /^(Eq|Ne|Lt|Le|Gt|Ge)$/;
/** Affinities, as SQLite numbers them: the last three are numeric. */
const AFFINITY_MASK = 0x47;
const FIRST_NUMERIC = 0x43;

/**
 * What takes no time, or about as long for each product or element, whatever its size: `loopCost` counts these. An instruction
 * that this file does not name is refused, because its cost is not known.
 */
const FREE = new Set(
  `AddImm AggFinal BeginSubrtn Close CollSeq DecrJumpZero Delete Filter FilterAdd Found Goto Halt IdxInsert IdxLE IfNotZero
   IfPos IsNull Last Next Noop NotFound NotNull NullRow OffsetLimit Once OpenEphemeral OpenRead ResultRow Return Rewind SeekRowid
   Sequence Sort Transaction VNext VOpen ZeroOrNull`.split(/\s+/),
);

/** A flag of `Copy`: functions of JSON take the copy as a text. */
const LOSES_SUBTYPE = 2;

/** Of a function in SQLite. */
const MOST_ARGUMENTS = 1_000;

const NOTHING: Size = { products: 0, literal: 0, isJson: false, addr: 0 };

type Registers = ReadonlyMap<number, Size>;

/** Adds the sizes that registers may have where another branch comes from. */
function merge(into: Map<number, Size>, other: Registers): void {
  for (const [register, size] of other) {
    const there = into.get(register);
    if (there === size) continue;
    into.set(register, {
      products: Math.max(size.products, there?.products ?? 0),
      literal: Math.max(size.literal, there?.literal ?? 0),
      isJson: size.isJson && there?.isJson !== false,
      addr: Math.min(size.addr, (there ?? size).addr),
    });
  }
}

/** An argument of a call, for all elements of the loop together. */
interface Argument extends Pick<Size, 'literal' | 'isJson'> {
  readonly size: number;
  readonly isLiteral: boolean;
}

/** @returns what a call reads and makes, and how long its result is */
function costOfCall(name: string, args: readonly Argument[], elements: number) {
  const escapes = ESCAPES.test(name);
  const first = args[0]?.size ?? 0;
  let made = ADDS.test(name) ? (AROUND_ARGUMENT * args.length * elements) / CHARACTERS : 0;
  let read = 0;
  let searched = 0;
  for (const [place, { size, literal, isLiteral, isJson }] of args.entries()) {
    const isTaken = escapes && (isJson || isLiteral);
    if (!isTaken || (place === 0 && name in PATHS)) read += size;
    made += size * (escapes && !isTaken ? 2 : 1);
    if (SEARCHES.test(name)) searched = Math.max(searched, literal);
  }
  // Each path is looked for from the beginning.
  const paths = Math.max(1, (args.length - 1) / (PATHS[name] ?? args.length));
  read += first * (paths - 1);
  if (EXTRACTS.test(name)) made = first * paths;
  if (SHORT.test(name)) made = 0;
  return { cost: read * (1 + searched / SEARCHED_AT_ONCE) + made, made, isJson: escapes || MAKES_JSON.test(name) };
}

/**
 * @returns what functions read and make, in multiples of a product of 100 kB; whether `json_each` reads more than a product; an
 * instruction whose cost is not known
 */
export function costOf(program: readonly Instruction[], { loopAround }: Pick<Program, 'loopAround'>) {
  const begin = program[0]?.p2 ?? 1;
  let cost = 0;
  let isLoopLonger = false;
  let unknown: string | undefined;
  /** What has a size; the rest is as short as a number. */
  let registers = new Map<number, Size>();
  /** What the beginning writes. Such a register is not written again. */
  let constants: Registers = registers;
  const sized = (register: number): Size => registers.get(register) ?? constants.get(register) ?? NOTHING;
  /** The largest of all records for sorting, grouping and comparing, which are read back. */
  let recorded = 1;
  /** The registers at the targets of jumps that were passed. */
  const waiting = new Map<number, Map<number, Size>>();

  function follow(one: Instruction): void {
    const { addr, opcode, p1, p2, p3, p4, p5 } = one;
    const loop = loopAround(addr);
    const write = (register: number, products: number, literal = 0, isJson = false): void => {
      if (products + literal === 0) registers.delete(register);
      else registers.set(register, { products, literal, isJson, addr: products > 0 ? addr : Number.POSITIVE_INFINITY });
    };
    const times = loop === undefined ? 1 : ELEMENTS;
    /** The multiples of the product in a register, for all elements of the loop together. */
    const productsOf = ({ products, addr: at }: Size): number => {
      const from = loopAround(at);
      const isOfElement = loop !== undefined && from !== undefined && from.from >= loop.from && at < loop.to;
      return products * (isOfElement ? 1 : times);
    };
    /** The size of an argument, for all elements of the loop together. */
    const sizeOf = (register: number): number => {
      const size = sized(register);
      return productsOf(size) + (size.literal * times) / CHARACTERS;
    };
    /** The size of a text that is made of it. Numbers have none, but their texts do. */
    const textSizeOf = (register: number): number => sizeOf(register) || (NUMBER_CHARACTERS * times) / CHARACTERS;
    // What an inner loop reads again of the product, or of an element of an outer loop, may be all of it each time.
    const again = loop === undefined || loop.cursor === p1 ? 1 : ELEMENTS;
    if (opcode === 'Column') write(p3, p1 === 0 ? again : recorded);
    else if (opcode === 'VColumn') {
      const size = COLUMN_PRODUCTS[p2] ?? 1;
      // What is longer is made again each time that it is read.
      if (again > 1 && size > 0) cost += again;
      write(p3, size);
    } else if (opcode === 'VFilter') {
      const read = sized(p3 + 2);
      isLoopLonger ||=
        productsOf(read) > MOST_LOOPED.products || (read.literal * times) / CHARACTERS > MOST_LOOPED.literal;
    } else if (opcode === 'MakeRecord') {
      let all = 0;
      for (let register = p1; register < p1 + p2; register++) all += textSizeOf(register);
      cost += all;
      recorded = Math.max(recorded, all);
    } else if (opcode === 'String8') write(p2, 0, JSON.stringify(p4 ?? '').length);
    else if (opcode === 'Blob') write(p2, 0, ESCAPED_BYTE * p1);
    else if (/^(Null|Integer|Int64|Real)$/.test(opcode)) write(p2, 0);
    else if (/^(Copy|SCopy|Move)$/.test(opcode)) {
      const count = { Copy: p3 + 1, Move: p3 }[opcode] ?? 1;
      for (let next = 0; next < count; next++) {
        const size = sized(p1 + next);
        write(p2 + next, productsOf(size), size.literal, size.isJson && (p5 & LOSES_SUBTYPE) === 0);
      }
    } else if (opcode === 'Concat') {
      const all = textSizeOf(p1) + textSizeOf(p2);
      cost += all;
      write(p3, all);
    } else if (ARITHMETIC.test(opcode)) {
      cost += sizeOf(p1) + sizeOf(p2);
      write(p3, 0);
    } else if (UNARY.test(opcode) || CONDITION.test(opcode)) {
      cost += sizeOf(p1);
      if (UNARY.test(opcode)) write(p2, 0);
    } else if (opcode === 'Cast') {
      if (p2 < FIRST_NUMERIC) return;
      cost += sizeOf(p1);
      write(p1, 0);
    } else if (opcode === 'Affinity') {
      for (const [place, affinity] of (p4 ?? '').split('').entries())
        if (affinity.charCodeAt(0) >= FIRST_NUMERIC) cost += sizeOf(p1 + place);
    } else if (COMPARISON.test(opcode)) {
      // Texts are compared as far as both go.
      const sizes = [sizeOf(p1), sizeOf(p3)] as const;
      cost += (p5 & AFFINITY_MASK) < FIRST_NUMERIC ? Math.min(...sizes) : sizes[0] + sizes[1];
    } else if (/^(Function|PureFunc|AggStep1?)$/.test(opcode)) {
      const [, name = '', listed = ''] = /^(.*)\((-?\d+)\)$/.exec(p4 ?? '') ?? [];
      let count = opcode.startsWith('Agg') ? p5 : Number(listed);
      // EXPLAIN does not list how many: all that may be.
      if (count < 0) count = MOST_ARGUMENTS;
      const args = Array.from({ length: count }, (_, place): Argument => {
        const { literal, isJson, products } = sized(p2 + place);
        return { size: textSizeOf(p2 + place), literal, isJson, isLiteral: products === 0 };
      });
      const call = costOfCall(name, args, loop === undefined ? 0 : ELEMENTS);
      cost += call.cost;
      write(p3, call.made, 0, call.isJson);
      // They are temporary: a later call must not count them again.
      if (!opcode.startsWith('Agg')) for (let at = p2; at < p2 + count; at++) if (at !== p3) registers.delete(at);
    } else if (!FREE.has(opcode)) unknown ??= opcode;
  }

  program.slice(begin).forEach(follow);
  constants = registers;
  registers = new Map();
  for (const one of program.slice(1, begin)) {
    const { addr, opcode, p2 } = one;
    merge(registers, waiting.get(addr) ?? new Map());
    waiting.delete(addr);
    follow(one);
    // Whatever `p2` means there: an instruction that does not jump merges too much, not too little.
    if (p2 > addr) {
      const there = waiting.get(p2);
      if (there === undefined) waiting.set(p2, new Map(registers));
      else merge(there, registers);
    }
    if (opcode === 'Goto') registers = new Map();
  }
  return { cost, isLoopLonger, unknown };
}
