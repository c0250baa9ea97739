import * as z from 'zod';
import type { EffectiveSetting } from '../operate/effective-settings.ts';
import { type Row, schemaOf } from './shown-row.ts';

// biome-ignore format: a row is a line.
export const SETTING = [
  { key: 'name', label: 'Setting', list: 'column', schema: z.string(), about: 'The variable.', value: ({ name }) => name },
  { key: 'value', label: 'Value', list: 'column', schema: z.string().nullable(), about: 'The value; `********` for a secret; null: it is not set.', value: ({ value }) => value },
  { key: 'from', label: 'From', list: 'column', schema: z.string(), about: '`default`, `environment`, `.env`, or the variable that names the file of a secret.', value: ({ from }) => from },
  { key: 'about', label: 'Meaning', list: 'long', about: 'What it is for.', value: ({ about }) => about },
] as const satisfies readonly Row<EffectiveSetting>[];

export const SETTING_SCHEMA = schemaOf('Setting', 'A setting as the process uses it, without secrets.', SETTING);
