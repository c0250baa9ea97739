import { EXIT_CODES } from '@catchword/base/errors';
import { OPTION_GROUPS, type Option } from '@catchword/settings/option-table';
import type { Command } from 'commander';
import { createProgram } from '../../src/cli/program.ts';
import { VERBS, type Verb } from '../../src/cli/verb-table.ts';
import { eventSchema } from '../../src/events/event-schema.ts';
import { contextWith } from '../support/in-process.ts';

/* The pages of docs/ that `npm run docs` writes from the tables in src. */

export const GENERATED = '<!-- Written by `npm run docs`. Do not edit. -->';

export function tableOf(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [head, head.map(() => '---'), ...rows];
  return lines.map((cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`).join('\n');
}

function helpOf(command: Command, lines: string[]): string {
  lines.length = 0;
  command.outputHelp();
  // `--help` goes without saying, and so does a list of options that has nothing else.
  return lines
    .join('')
    .replace(/^ +-h, --help .*\n/m, '')
    .replace(/^Options:\n(\n|$)/m, '')
    .trim();
}

async function sectionOf({ name, exits }: Verb): Promise<string> {
  const lines: string[] = [];
  const stdout = Object.assign(contextWith({}).stdout, { write: (text: string) => lines.push(text) > 0 });
  const program = await createProgram(contextWith({ stdout }), [name]);
  const command = program.commands.find((one) => one.name() === name);
  if (command === undefined) throw new Error(`${name} is not a command`);
  const helps = [command, ...command.commands].map((one) => `\`\`\`text\n${helpOf(one, lines)}\n\`\`\``);
  const meanings = exits.map((code) => `${code} (${EXIT_CODES[code]?.split(':')[0]})`);
  const codes = exits.length === 0 ? [] : [`Other exit codes of \`${name}\`: ${meanings.join(', ')}.`];
  return [`### ${name}`, ...codes, ...helps].join('\n\n');
}

export async function commandsPage(): Promise<string> {
  const groups = [...new Set(VERBS.map(({ group }) => group))];
  const sections = await Promise.all(
    groups.map(async (group) => {
      const verbs = VERBS.filter((verb) => verb.group === group);
      return [`## ${group}`, ...(await Promise.all(verbs.map(sectionOf)))].join('\n\n');
    }),
  );
  const exitCodes = Object.entries(EXIT_CODES).map(([code, meaning]) => [code, meaning]);
  return `${[
    '# Commands',
    GENERATED,
    'In a checkout, `npx catchword <verb>` and `node dist/cli.js <verb>` are the same. stdout is for data, stderr for logs and progress. With `--json`, a command prints one JSON document, or one document per line if it streams, and nothing else on stdout. `NO_COLOR` turns colours off.',
    'Every command exits with 0, 1 or 2, or with 129, 130 or 143 after a signal; other codes are named with the command.',
    tableOf(['exit code', 'meaning'], exitCodes),
    ...sections,
  ].join('\n\n')}\n`;
}

/** Settings that every sink has. */
const SINK_OPTIONS = [
  { env: 'CATCHWORD_SINK_<NAME>', form: 'an address such as jsonl:changes.jsonl', help: 'a sink, named in lower case' },
  { env: 'CATCHWORD_SINK_<NAME>_SECRET', form: 'text', help: 'key that signs the requests of a webhook, or two' },
  { env: 'CATCHWORD_SINK_<NAME>_HEADERS', form: 'a line for each', help: 'further headers of a webhook' },
  { env: 'CATCHWORD_SINK_<NAME>_WHERE', form: 'an SQL expression', help: 'which products a sink gets' },
  { env: 'CATCHWORD_SINK_<NAME>_MODULE', form: 'a package, or a path', help: 'module that handles the address' },
  { env: 'CATCHWORD_SINK_<NAME>_FIELDS', form: 'a list, or an SQL expression', help: 'what it gets of each product' },
];

/** Settings that every channel for notifications has. */
const CHANNEL_OPTIONS = [
  {
    env: 'CATCHWORD_NOTIFY_<NAME>',
    form: 'an address such as smtps://user:password@mail.example?from=a@shop.example&to=b@shop.example',
    help: 'who is notified when something is wrong',
  },
  { env: 'CATCHWORD_NOTIFY_<NAME>_SECRET', form: 'text', help: 'key that signs the requests of a webhook' },
  { env: 'CATCHWORD_NOTIFY_<NAME>_HEADERS', form: 'a line for each', help: 'further headers of a webhook or Slack' },
];

function settingRow({ env, fallback, schema, help, secret }: Option): readonly string[] {
  const names = secret ? `\`${env}\`, \`${env}_FILE\`` : `\`${env}\``;
  return [names, fallback ? `\`${fallback}\`` : '(none)', schema.description ?? '', secret ? `${help} (secret)` : help];
}

/** The file `schemas/event.json`. */
export function eventSchemaFile(): string {
  return `${JSON.stringify(eventSchema(), null, 2)}\n`;
}

export function settingsPage(): string {
  const head = ['variable', 'default', 'form', 'meaning'];
  const groups = Object.entries(OPTION_GROUPS).map(
    ([group, options]) => `## ${group}\n\n${tableOf(head, Object.values(options).map(settingRow))}`,
  );
  const named = (options: typeof SINK_OPTIONS): string => {
    const rows = options.map(({ env, form, help }) => [
      `\`${env}\`, \`${env}_FILE\``,
      '(none)',
      form,
      `${help} (secret)`,
    ]);
    return tableOf(head, rows);
  };
  return `${[
    '# Settings',
    GENERATED,
    'Settings are environment variables. catchword also reads `.env` in the working directory; a variable of the environment takes precedence. An empty value counts as not set.',
    'catchword reads `.env`, and the files of secrets, in UTF-8, and in UTF-16 with a byte order mark. Line breaks at the end of a value are dropped. Quotes around a value are an error outside of `.env`, since `docker --env-file` keeps them, and so is a path that starts with `~`, which only a shell replaces. An invalid value is an error that names the variable, with every other wrong setting; one of a sink stops [that sink only](sink-trouble.md#a-wrong-setting); an unknown `CATCHWORD_` variable is ignored, with a note on stderr.',
    'A secret may come from a file: set the variable with `_FILE` to its path. `npx catchword settings` prints every setting and where it comes from; `npx catchword doctor` checks them.',
    '## After a change',
    'A daemon reads its settings when it starts, as every other role does; only files of secrets are read again. So restart it after a change (SIGHUP ends it, and reloads nothing).',
    'Until then `status`, `doctor`, `sink list`, `notify test` and the page name each setting that it was not started with as `.env` has it now. Commands also name their own settings that differ from those of the daemon; a setting that a command does not have proves nothing. For this, the daemon keeps a digest of each setting in the mirror, but never of a secret: of a password it only notes whether one is set.',
    ...groups,
    `## Sinks\n\n${named(SINK_OPTIONS)}`,
    'See [sinks](sinks.md) for the addresses and options of each kind.',
    `## Channels\n\n${named(CHANNEL_OPTIONS)}`,
    'See [notifications](notifications.md) for the addresses of each kind, and for the messages.',
  ].join('\n\n')}\n`;
}
