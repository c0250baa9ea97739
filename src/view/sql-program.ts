/*
 * Reads the program that SQLite makes of an expression: what EXPLAIN lists. The expression is the WHERE clause of a query of
 * one table, which has cursor 0.
 */

/** An instruction; see https://sqlite.org/opcode.html. */
export interface Instruction {
  readonly addr: number;
  readonly opcode: string;
  readonly p1: number;
  readonly p2: number;
  readonly p3: number;
  readonly p4: string | null;
  readonly p5: number;
}

/** A loop over the elements of a JSON array or object (`json_each`), or over sorted rows. */
interface Loop {
  readonly cursor: number;
  readonly from: number;
  readonly to: number;
}

const CALLS = ['Function', 'PureFunc', 'AggStep', 'AggStep1', 'AggInverse', 'AggFinal', 'AggValue'];
const MOST_ARGS = 8;
/** How many times as long as others these instructions take (measured), or what reads the text that they make. */
const WEIGHTS: Readonly<Record<string, number>> = { Function: 3, PureFunc: 3, IdxInsert: 25, Concat: 20 };
/** Functions of JSON parse the element again. */
const PARSES_JSON = /^(json|->)/;
const JSON_WEIGHT = 6;
/** The column `fullkey` of `json_each`, a text that is made for each element. */
const FULLKEY = 6;
const FULLKEY_WEIGHT = 3;

function weightOf({ opcode, p2, p4 }: Instruction): number {
  if (opcode === 'Function' && PARSES_JSON.test(p4 ?? '')) return JSON_WEIGHT;
  return opcode === 'VColumn' && p2 === FULLKEY ? FULLKEY_WEIGHT : (WEIGHTS[opcode] ?? 1);
}

export function readProgram(program: readonly Instruction[]) {
  const of = (...opcodes: string[]): Instruction[] => program.filter(({ opcode }) => opcodes.includes(opcode));
  const once = of('Once').map(({ addr, p2 }) => ({ from: addr, to: p2 }));

  const loops: Loop[] = of('VFilter', 'SorterSort', 'Sort').flatMap(({ addr, p1 }) => {
    const end = program.find(
      ({ opcode, ...next }) => /^(V|Sorter)?Next$/.test(opcode) && next.p1 === p1 && next.addr > addr,
    );
    return end === undefined ? [] : [{ cursor: p1, from: addr, to: end.addr }];
  });

  /** The innermost loop around an instruction, unless something in between is done only once. */
  function loopAround(addr: number): Loop | undefined {
    const around = loops.filter(({ from, to }) => from < addr && addr < to);
    const [innermost] = around.sort((a, b) => b.from - a.from);
    const isOnce = once.some(({ from, to }) => from > (innermost?.from ?? 0) && from < addr && addr < to);
    return isOnce ? undefined : innermost;
  }

  /** The instructions that write each register. */
  const writers = new Map<number, Instruction[]>();
  for (const one of program) {
    const isThird = /^(Column|VColumn|Function|PureFunc|Concat)$/.test(one.opcode);
    if (!isThird && !/^(String8|Blob|Copy|SCopy|Null|Integer|Int64|Real)$/.test(one.opcode)) continue;
    const register = isThird ? one.p3 : one.p2;
    const others = writers.get(register);
    if (others === undefined) writers.set(register, [one]);
    else others.push(one);
  }

  /** The instructions that write a register, before `addr` and after `from`. */
  function writersOf(register: number, addr: number, from = -1): Instruction[] {
    return (writers.get(register) ?? []).filter((one) => one.addr < addr && one.addr > from);
  }

  const writerOf = (...given: Parameters<typeof writersOf>): Instruction | undefined => writersOf(...given).at(-1);

  /**
   * The text of a register that holds a literal, whichever branch the program takes. Literals are often loaded at the end of a
   * program, where it starts.
   */
  function literalIn(register: number, addr: number): string | null {
    const last = writerOf(register, addr);
    const isPassed = ({ addr: at, p2 }: Instruction): boolean =>
      last !== undefined && at < last.addr && p2 > last.addr && p2 <= addr;
    // CASE and coalesce() lead past it, with what another branch has written.
    if (of('Goto', 'NotNull').some(isPassed)) return null;
    const [writer, other] = last === undefined ? (writers.get(register) ?? []) : [last];
    return writer?.opcode === 'String8' && other === undefined ? writer.p4 : null;
  }

  const isLiteral = (register: number): boolean =>
    of('String8').some(({ addr, p2 }) => p2 === register && loopAround(addr) === undefined);

  /** Whether a register has nothing but a value of the current element of a loop, or a literal. */
  function isOfElement(register: number, addr: number, loop: Loop): boolean {
    const writers = writersOf(register, addr, loop.from);
    return (
      writers.length > 0 &&
      writers.every(({ opcode, addr: at, p1, p2 }) => {
        if (opcode === 'VColumn') return p1 === loop.cursor;
        if (opcode === 'Copy' || opcode === 'SCopy') return isLiteral(p1) || isOfElement(p1, at, loop);
        return opcode === 'Function' ? isOfElement(p2, at, loop) : opcode === 'String8' || opcode === 'Null';
      })
    );
  }

  /** The call of a function. `args` of one with any number of arguments are guessed. */
  function callOf(at: Instruction) {
    const [, name = '', count = ''] = /^(.*)\((-?\d+)\)$/.exec(at.p4 ?? '') ?? [];
    const many = Number(count);
    const from = loopAround(at.addr)?.from ?? 0;
    const registers = Array.from({ length: many < 0 ? MOST_ARGS : many }, (_, place) => at.p2 + place);
    const other = registers.findIndex((register) => many < 0 && writerOf(register, at.addr, from) === undefined);
    return {
      at,
      name,
      args: other < 0 ? registers : registers.slice(0, other),
      /** Whether an argument, by its place, is the same for all rows. */
      isConstant: (place: number): boolean => ((at.p1 >> place) & 1) === 1,
    };
  }

  return {
    of,
    loops,
    loopAround,
    writersOf,
    writerOf,
    literalIn,
    isOfElement,
    calls: of(...CALLS).map(callOf),
    /** The instructions of loops, each as often as `weightOf` says. */
    loopCost: program.reduce((sum, one) => sum + (loopAround(one.addr) ? weightOf(one) : 0), 0),
    /** Jumps back, except by a loop, and to the beginning. */
    jumpsBack: of('Goto').filter(({ addr, p2 }) => p2 > 1 && p2 < addr),
  };
}

export type Program = ReturnType<typeof readProgram>;
