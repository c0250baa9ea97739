import type { Instruction, Program } from './sql-program.ts';

/*
 * How much text an expression reads and makes, in multiples of the product: calls alone say little, because the result of one
 * is an argument of the next one. The program is followed from its start, with the size of each register. Where branches meet,
 * the larger size counts. Sizes are bounds: a loop over elements is counted as all of its elements together.
 */

/** The size of a register: multiples of the product, and characters of literals. */
interface Size {
  readonly products: number;
  readonly literal: number;
  /** Where it was written. */
  readonly addr: number;
}

/** A product of 100 kB is one; it has at most half as many elements as characters. */
const CHARACTERS = 100_000;
const ELEMENTS = CHARACTERS / 2;
/** What a function adds to each element, such as brackets and a comma, in characters. */
const AROUND_ELEMENT = 4;
/** The columns `fullkey` and `path` of `json_each` repeat the names on the way to an element. */
const PATH_COLUMNS = [6, 7];
const PATH_CHARACTERS = 60;

/** An escaped text may be twice as long. */
const ESCAPES = /^json_(array|object|quote|insert|replace|set|group_array|group_object)$/;
/** Results that do not grow with the arguments. */
const SHORT =
  /^(json_(array_length|type|valid)|abs|avg|ceil(ing)?|count|floor|glob|instr|length|like|octet_length|round|sign|sum|total|typeof|unicode)$/;

/** Functions that compare each character with a literal. So many characters of it cost as much as a reading (measured). */
const SEARCHES = /^(glob|instr|like|[lr]?trim)$/;
const SEARCHED_AT_ONCE = 5;

const NOTHING: Size = { products: 0, literal: 0, addr: 0 };

type Registers = ReadonlyMap<number, Size>;

function merged(one: Registers | undefined, other: Registers | undefined): Map<number, Size> {
  const sizes = new Map(one);
  for (const [register, size] of other ?? []) {
    const there = sizes.get(register);
    sizes.set(register, {
      products: Math.max(size.products, there?.products ?? 0),
      literal: Math.max(size.literal, there?.literal ?? 0),
      addr: Math.max(size.addr, there?.addr ?? 0),
    });
  }
  return sizes;
}

/** @returns what the functions of an expression read and make, in multiples of a product of 100 kB */
export function costOf(program: readonly Instruction[], { loopAround }: Pick<Program, 'loopAround'>): number {
  const begin = program[0]?.p2 ?? 1;
  let cost = 0;
  let registers = new Map<number, Size>();
  /** The largest of all records for sorting, grouping and comparing, which are read back. */
  let recorded = 1;
  /** The registers at the targets of jumps that were passed. */
  const waiting = new Map<number, Registers>();

  function follow(one: Instruction): void {
    const { addr, opcode, p1, p2, p3, p4, p5 } = one;
    const loop = loopAround(addr);
    const write = (register: number, products: number, literal = 0) =>
      registers.set(register, { products, literal, addr });
    /** The size of an argument, for all elements of the loop together. */
    const sizeOf = (register: number): number => {
      const { products = 0, literal = 0, addr: at = 0 } = registers.get(register) ?? {};
      const times = loop === undefined ? 1 : ELEMENTS;
      const isOfElement = loop !== undefined && at > loop.from && at < loop.to;
      return products * (isOfElement ? 1 : times) + (literal * times) / CHARACTERS;
    };
    /** Charges a call. @returns the size of its result */
    const charge = (from: number, count: number, name: string): number => {
      const factor = ESCAPES.test(name) ? 2 : SHORT.test(name) ? 0 : 1;
      let all = loop === undefined ? 0 : (AROUND_ELEMENT * ELEMENTS) / CHARACTERS;
      let searched = 0;
      for (let register = from; register < from + count; register++) {
        all += sizeOf(register);
        if (SEARCHES.test(name)) searched = Math.max(searched, registers.get(register)?.literal ?? 0);
      }
      cost += all * (1 + factor + searched / SEARCHED_AT_ONCE);
      return all * factor;
    };

    // What an inner loop reads again of the product, or of an element of an outer loop, may be all of it each time.
    const again = loop === undefined || loop.cursor === p1 ? 1 : ELEMENTS;
    if (opcode === 'Column') write(p3, p1 === 0 ? again : recorded);
    else if (opcode === 'VColumn')
      write(p3, again * (PATH_COLUMNS.includes(p2) ? (PATH_CHARACTERS * ELEMENTS) / CHARACTERS : 1));
    else if (opcode === 'MakeRecord') {
      let all = 0;
      for (let register = p1; register < p1 + p2; register++) all += sizeOf(register);
      cost += all;
      recorded = Math.max(recorded, all);
    } else if (opcode === 'String8') write(p2, 0, p4?.length ?? 0);
    else if (/^(Null|Integer|Int64|Real)$/.test(opcode)) write(p2, 0);
    else if (opcode === 'Copy' || opcode === 'SCopy') {
      for (let next = 0; next <= (opcode === 'Copy' ? p3 : 0); next++) {
        const { products = 0, literal = 0 } = registers.get(p1 + next) ?? {};
        write(p2 + next, products, literal);
      }
    } else if (opcode === 'Move') {
      for (let next = 0; next < p3; next++) registers.set(p2 + next, registers.get(p1 + next) ?? NOTHING);
    } else if (opcode === 'Concat') {
      const all = sizeOf(p1) + sizeOf(p2);
      cost += all;
      write(p3, all);
    } else if (/^(Function|PureFunc|AggStep1?)$/.test(opcode)) {
      const [, name = '', listed = ''] = /^(.*)\((-?\d+)\)$/.exec(p4 ?? '') ?? [];
      let count = opcode.startsWith('Agg') ? p5 : Number(listed);
      // EXPLAIN does not list how many: as many as were written in a row.
      if (count < 0) for (count = 0; registers.has(p2 + count); ) count++;
      const made = charge(p2, count, name);
      // They are temporary: a later call must not count them again.
      if (!opcode.startsWith('Agg')) for (let at = p2; at < p2 + count; at++) registers.delete(at);
      write(p3, made);
    }
  }

  for (const addr of [...program.keys()].slice(begin).concat([...program.keys()].slice(1, begin))) {
    const one = program[addr];
    if (one === undefined) continue;
    if (waiting.has(addr)) registers = merged(registers, waiting.get(addr));
    follow(one);
    // Whatever `p2` means there: an instruction that does not jump merges too much, not too little.
    if (one.p2 > addr && addr < begin) waiting.set(one.p2, merged(waiting.get(one.p2), registers));
    if (one.opcode === 'Goto' && addr < begin) registers = new Map();
  }
  return cost;
}
