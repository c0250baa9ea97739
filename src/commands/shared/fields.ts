import type { Command } from 'commander';
import { type CatchwordError, messageOf } from '../../errors.ts';
import { type Input, readText } from '../../input-stream.ts';
import { usageError } from './usage-error.ts';

/** The fields of a record to write, as the command line gives them. */
export interface FieldsInput {
  /** Path of a JSON file; `-` is stdin. */
  readonly file?: string | undefined;
  /** `name=value`, or `name.part=value` for a part of a structured field; overrides the file and earlier ones. */
  readonly set?: readonly string[] | undefined;
}

type Fields = Readonly<Record<string, unknown>>;

const append = (given: string, before: readonly string[] = []): string[] => [...before, given];

/** Adds the options `--file` and `--set` to a command. */
export function withFieldOptions(command: Command): Command {
  return command
    .option('--file <path>', 'read the fields from a JSON object; - reads stdin')
    .option('--set <field=value>', 'set one field, overriding the file; may be repeated', append);
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function wrongFile(message: string): CatchwordError {
  return usageError(`--file: ${message}`, 'Write the fields as one JSON object.');
}

async function fromFile(file: string, input: Input): Promise<Fields> {
  const name = file === '-' ? 'stdin' : file;
  const json = await readText(input, file, `--file ${name}`);
  try {
    const value: unknown = JSON.parse(json);
    if (isObject(value)) return value;
  } catch (error) {
    throw wrongFile(`${name} is not JSON (${messageOf(error).split('\n')[0]})`);
  }
  throw wrongFile(`${name} is not a JSON object`);
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
    throw usageError(
      `--set: ${JSON.stringify(given.slice(0, 40))} is not of the form name=value`,
      'Such as --set title="A title" --set \'prices=[{"currency":"USD","type":"digital_list_price","amount":"9.90"}]\'.',
    );
  }
  const read = readValue(value, isJson(name));
  if (part === undefined) return { ...fields, [name]: read };
  const before = fields[name];
  return { ...fields, [name]: { ...(isObject(before) ? before : {}), [part]: read } };
}

/**
 * Reads the fields to write.
 * @param isJson whether `--set` takes JSON for a field of that name
 * @throws CatchwordError USAGE if no field is given, or one cannot be read; INTERRUPTED
 */
export async function readFields(
  { file, set = [] }: FieldsInput,
  isJson: (name: string) => boolean,
  input: Input,
): Promise<Fields> {
  if (file === undefined && set.length === 0) {
    throw usageError(
      'no field is given',
      'Give them with --file fields.json, --file - for stdin, or --set name=value.',
    );
  }
  const start = file === undefined ? {} : await fromFile(file, input);
  return set.reduce((fields, given) => withSet(fields, given, isJson), start);
}
