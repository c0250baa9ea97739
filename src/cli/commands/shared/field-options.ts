import { messageOf, usageError } from '@catchword/base/errors';
import { type Input, readText } from '@catchword/base/input-stream';
import type { Command } from 'commander';

/** The fields of a record to write, as the command line gives them. */
export interface FieldsInput {
  /** Path of a JSON file; `-` is stdin. */
  readonly file?: string | undefined;
  /** `name=value`, or `name.part=value` for a part of a structured field; overrides the file and earlier ones. */
  readonly set?: readonly string[] | undefined;
}

type Fields = Readonly<Record<string, unknown>>;

const append = (given: string, before: readonly string[] = []): string[] => [...before, given];

export function withFieldOptions(command: Command): Command {
  return command
    .option('--file <path>', 'read the fields from a JSON object; - reads stdin')
    .option('--set <field=value>', 'set one field, overriding the file; may be repeated', append);
}

const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

async function fromFile(file: string, input: Input): Promise<Fields> {
  const name = file === '-' ? 'stdin' : file;
  const json = await readText(input, file, `--file ${name}`);
  const hint = 'Write the fields as one JSON object.';
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    throw usageError(`--file: ${name} is not JSON (${messageOf(error).split('\n')[0]})`, hint);
  }
  if (isObject(value)) return value;
  throw usageError(`--file: ${name} is not a JSON object`, hint);
}

/** Reads JSON in a structured field. Everything else is text: digits, too, because an ISBN is not a number. */
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
    const example = '--set \'prices=[{"currency":"USD","type":"digital_list_price","amount":"9.90"}]\'';
    const message = `--set: ${JSON.stringify(given.slice(0, 40))} is not of the form name=value`;
    throw usageError(message, `Such as --set title="A title" ${example}.`);
  }
  const read = readValue(value, isJson(name));
  if (part === undefined) return { ...fields, [name]: read };
  const before = fields[name];
  return { ...fields, [name]: { ...(isObject(before) ? before : {}), [part]: read } };
}

/**
 * @param isJson whether `--set` takes JSON for a field of that name
 * @throws CatchwordError USAGE if no field is given, or one cannot be read; INTERRUPTED
 */
export async function readFields(
  { file, set = [] }: FieldsInput,
  isJson: (name: string) => boolean,
  input: Input,
): Promise<Fields> {
  if (file === undefined && set.length === 0) {
    const hint = 'Give them with --file fields.json, --file - for stdin, or --set name=value.';
    throw usageError('no field is given', hint);
  }
  const start = file === undefined ? {} : await fromFile(file, input);
  return set.reduce((fields, given) => withSet(fields, given, isJson), start);
}
