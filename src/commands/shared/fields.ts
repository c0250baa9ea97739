import { CatchwordError, messageOf } from '../../errors.ts';
import { type Input, readAll } from './input-stream.ts';
import { textOf } from './utf8.ts';

/** Fields of a record to write, as a command is given them. */
export interface FieldsInput {
  /** Path of a JSON file; `-` is stdin. */
  readonly file?: string | undefined;
  /** `name=value`, or `name.part=value` for a part of a structured field; later ones win, and all win over the file. */
  readonly set?: readonly string[] | undefined;
}

type Fields = Readonly<Record<string, unknown>>;

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

async function fromFile(file: string, input: Input): Promise<Fields> {
  const name = file === '-' ? 'stdin' : file;
  const json = textOf(await readAll(input, file), `--file ${name}`).replace(/^\ufeff/, '');
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    throw new CatchwordError('USAGE', `--file: ${name} is not JSON (${messageOf(error).split('\n')[0]})`, {
      hint: 'Write the fields as one JSON object.',
    });
  }
  if (isObject(value)) return value;
  throw new CatchwordError('USAGE', `--file: ${name} holds no JSON object`, {
    hint: 'Write the fields as one JSON object.',
  });
}

/**
 * Structured fields are given as JSON; all else is text, which numbers and booleans may be sent as. Digits stay text in
 * structured fields as well: an ISBN is no number.
 */
function readValue(given: string, isJson: boolean): unknown {
  if (!isJson || !/^\s*(?:[[{"]|(?:null|true|false)\s*$)/.test(given)) return given;
  try {
    return JSON.parse(given);
  } catch {
    return given;
  }
}

function withSet(fields: Fields, given: string, isJson: (name: string) => boolean): Fields {
  const [, name, part, value] = /^([\w-]+)(?:\.([\w-]+))?=(.*)$/s.exec(given) ?? [];
  if (name === undefined || value === undefined) {
    throw new CatchwordError('USAGE', `--set: ${JSON.stringify(given.slice(0, 40))} is not of the form name=value`, {
      hint: 'Such as --set title="A title" --set \'prices=[{"currency":"USD","type":"digital_list_price","amount":"9.90"}]\'.',
    });
  }
  const read = readValue(value, isJson(name));
  if (part === undefined) return { ...fields, [name]: read };
  const before = fields[name];
  return { ...fields, [name]: { ...(isObject(before) ? before : {}), [part]: read } };
}

/**
 * @param isJson whether a field of that name may be given as JSON: it holds an object or an array, or null takes it away
 * @throws CatchwordError USAGE where nothing is given, or what is given cannot be read; INTERRUPTED
 */
export async function readFields(
  { file, set = [] }: FieldsInput,
  isJson: (name: string) => boolean,
  input: Input,
): Promise<Fields> {
  if (file === undefined && set.length === 0) {
    throw new CatchwordError('USAGE', 'there are no fields to write', {
      hint: 'Give them with --file fields.json, --file - for stdin, or --set name=value.',
    });
  }
  const start = file === undefined ? {} : await fromFile(file, input);
  return set.reduce((fields, given) => withSet(fields, given, isJson), start);
}

/** For an option that may be repeated. */
export function collected(given: string, before: readonly string[]): string[] {
  return [...before, given];
}
