import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import type { Block } from './blocks.ts';

/* Makes one script for bash of all blocks of a page, so that a later block finds what an earlier one made or exported. */

/** Programs that cannot run here, with the reason and what takes their place. `$page` is the directory of the page. */
const STAND_INS: Readonly<Record<string, readonly [reason: string, instead?: string]>> = {
  docker: ['needs a daemon and a registry: see test/ops/containers.test.ts'],
  kubectl: ['needs a cluster'],
  systemctl: ['needs systemd as the first process: see test/ops/systemd.test.ts'],
  journalctl: ['needs systemd as the first process'],
  pm2: ['is not a dependency: see test/package/pm2.test.ts'],
  litestream: ['needs a bucket: see test/store/litestream.test.ts', '[ "$1" != restore ] || npx catchword backup "$3"'],
  datasette: ['is a package of Python, and serves until it is stopped'],
  mail: ['needs a mail server', 'cat >/dev/null'],
  rsync: ['needs another host'],
  useradd: ['would change the users of this machine'],
  npm: [
    'needs the registry: see test/package/install.test.ts',
    `case "$*" in
      init*|pkg*) exec "$npm" "$@";;
      *--prefix*) mkdir -p "$3"; ln -sfn "$page/node_modules" "$3/node_modules";;
    esac`,
  ],
  python3: [
    'lacks Django, whose server runs until it is stopped',
    'case "$*" in *runserver) ;; *) exec /usr/bin/python3 "$@";; esac',
  ],
  // The first npx in PATH is the one of test/docs.
  npx: [
    'would look for packages in the registry, and does not stop a service',
    `case "$1 $2 $* " in
      "catchword "*" --follow "*|"catchword "*" --stay "*) ;;
      "catchword daemon "*|"catchword keeper "*|"catchword fetcher "*|"catchword scheduler "*) ;;
      "catchword relay "*|"catchword web "*|"catchword sandbox "*) ;;
      "catchword "*) shift; exec node node_modules/.bin/catchword "$@";;
    esac
    exec node "$npx" "$@"`,
  ],
};

/** Blocks that are a part of something which only their reader has. Their syntax is checked. */
export const FRAGMENTS: Readonly<Record<string, string>> = {
  'docs/stores/module.md': "the reader's test: test/relay/contract.test.ts runs sinkChecks",
};

/** Blocks that the test of their subject runs, by page and language. */
export const ELSEWHERE: Readonly<Record<string, string>> = {
  'docs/stores/postgres.md rb': 'packages/sink-sql/test/postgres-shop.test.ts',
  // DuckDB cannot load its extension for buckets without the network, so it reads the objects as files.
  'docs/stores/s3.md sql': 'test/support/s3-reader.ts',
};

/** What stands in a document for something of the reader, and what it is here. */
export interface Places {
  readonly sandbox: string;
  readonly web: string;
  /** Answers every request with 200. */
  readonly receiver: string;
  readonly postgres: string;
  readonly mysql: string;
  readonly redis: string;
  readonly nats: string;
  readonly secret: string;
}

/** Replaces addresses, and paths outside of the page's directory. */
function placed(code: string, places: Places): string {
  const found: readonly (readonly [RegExp, string])[] = [
    [/(?<=CATCHWORD_BASE_URL=)https:\/\/…/g, places.sandbox],
    [/(?<=CATCHWORD_API_KEY=)…/g, 'SANDBOXKEY'],
    [/(?<=CATCHWORD_ACCESS_TOKEN=)…/g, 'sandboxtoken'],
    [/http:\/\/127\.0\.0\.1:4010/g, places.sandbox],
    [/http:\/\/127\.0\.0\.1:8080/g, places.web],
    [/(?<=mysql:\/\/)user:password@db\.example/g, places.mysql],
    [/(?<=mariadb:\/\/bookshop:a%20password@)db\.example/g, places.mysql.replace(/.*@/, '')],
    [/user:password@db\.example/g, places.postgres],
    [/postgres:\/\/\/(\w+)\?host=[\w/]+&/g, `postgres://${places.postgres}/$1?`],
    [/user:password@redis\.example/g, places.redis],
    [/user:password@nats\.example/g, places.nats],
    [/https:\/\/hooks\.slack\.com\/[\w/]+/g, `${places.receiver}/#allow=private`],
    [/whsec_…/g, places.secret],
    [/(?<![\w.:/$"}])\/(etc|opt|srv|backup|tmp)\b/g, '$page/$1'],
    [/(?<=")\/(etc|opt|srv|backup|tmp)\b/g, '$page/$1'],
  ];
  return found.reduce((text, [from, to]) => text.replace(from, to), code);
}

/** @returns a command that gets `text` on its stdin, unchanged */
function withInput(command: string, text: string): string {
  return `${command} <<'END OF BLOCK'\n${text}\nEND OF BLOCK\n`;
}

function crontab(code: string): string {
  const lines = code.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return lines
    .map((line) => {
      const [, schedule = '', command = ''] = /^(\S+ \S+ \S+ \S+ \S+) (.*)$/.exec(line) ?? [];
      return `node -e 'process.exit(require("node-cron").validate(process.argv[1]) ? 0 : 1)' '${schedule}'\n(${command.replaceAll('\\%', '%')})\n`;
    })
    .join('');
}

/** A unit of systemd, a part that is added to one, or the settings in `.env`. */
function ini(code: string): string {
  if (!code.includes('[')) return withInput('cat >.env', code);
  const [, named] = /^# \/etc\/systemd\/system\/(\S+)$/m.exec(code) ?? [];
  const unit = named === undefined || named.includes('.d/') ? 'catchword.service' : named;
  const file = unit === named ? `units/${unit}` : `units/${unit}.d/override.conf`;
  const whole =
    unit === named
      ? ''
      : `sed "s#ExecStart=node #ExecStart=$(command -v node) #" node_modules/catchword/ops/${unit} >units/${unit}\n`;
  const timed = unit.endsWith('.timer')
    ? `printf '[Service]\\nExecStart=/bin/true\\n' >units/${unit.replace('.timer', '.service')}\n`
    : '';
  return `rm -rf units; mkdir -p units/${unit}.d\n${whole}${timed}${withInput(`cat >${file}`, code)}systemd-analyze verify units/${unit}\n`;
}

function nginx(code: string): string {
  const places = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((kind) => `${kind}_temp_path logs;`)
    .join(' ');
  const whole = `pid nginx.pid; error_log stderr; events {} http { access_log off; ${places} server { listen 127.0.0.1:8; ${code} } }`;
  return `mkdir -p logs; ${withInput('cat >nginx.conf', whole)}[ -z "$CI" ] && ! command -v nginx || nginx -t -p . -c nginx.conf\n`;
}

/** What runs, or checks, a block of each language. `page` decides where SQL runs. */
const RUNS: Readonly<Record<string, (code: string, page: string, places: Places) => string>> = {
  sh: (code, _, places) => {
    const settings = /^export CATCHWORD_/m.test(code) ? 'npx catchword settings >/dev/null\n' : '';
    return `${placed(code, places)}\n${settings}`;
  },
  sql: (code, page, { mysql }) => {
    if (page === 'docs/sql.md') return withInput("sqlite3 -readonly -bail -cmd '.timeout 5000' data/catalog.db", code);
    if (!['docs/stores/mysql.md', 'docs/recipes/mariadb-shop.md'].includes(page))
      return withInput('psql -q -v ON_ERROR_STOP=1 shop', code);
    return withInput(`mariadb -h 127.0.0.1 -P ${mysql.split(':')[1]} -u root shop`, code);
  },
  python: (code) => withInput('/usr/bin/python3 -I -', code),
  // A part of a project of Django.
  py: (code) => withInput(`/usr/bin/python3 -I -c 'import ast, sys; ast.parse(sys.stdin.read())'`, code),
  ts: (code, page, places) => {
    const command = page in FRAGMENTS ? '"$esbuild" block.ts >/dev/null' : '"$tsx" block.ts';
    return `${withInput('cat >block.ts', placed(code, places))}${command}\n`;
  },
  js: (code, _, places) => {
    const head = "import { EventSource } from 'eventsource';\n";
    const tail = '\nsetInterval(() => products.size > 0 && process.exit(0), 20);';
    return `${withInput('cat >block.mjs', head + placed(code, places) + tail)}node block.mjs\n`;
  },
  php: (code, _, { mysql }) => {
    const dsn = `mysql:host=127.0.0.1;port=${mysql.split(':')[1]};dbname=bookshop;charset=utf8mb4`;
    const php = `SHOP_DSN='${dsn}' SHOP_USER=bookshop SHOP_PASSWORD='a password' php`;
    return `[ -z "$CI" ] && ! command -v php >/dev/null || { ${withInput(php, code)}echo; }\n`;
  },
  json: (code) => withInput('node -e "JSON.parse(fs.readFileSync(0))"', code),
  yaml: (code) => {
    parse(code);
    return '';
  },
  crontab: (code, _, places) => crontab(placed(code, places)),
  ini: (code, _, places) => (code.includes('[') ? ini(code) : ini(placed(code, places))),
  nginx,
  redis: (code, _, { redis }) => withInput(`redis-cli -e -u redis://${redis}`, code),
};

/** @throws if nothing runs the block */
function run({ page, language, code }: Block, places: Places): string {
  const test = ELSEWHERE[`${page} ${language}`];
  if (test !== undefined && readFileSync(new URL(`../../${test}`, import.meta.url), 'utf8').includes(page)) return '';
  const make = RUNS[language];
  if (make === undefined) throw new Error(`${page}: nothing runs a block of "${language}":\n${code}`);
  return make(code.trimEnd(), page, places);
}

/** The script of a page. @throws if nothing runs one of its blocks */
export function scriptOf(blocks: readonly Block[], places: Places): string {
  const parts = blocks.map(
    (block, nth) =>
      `for out in 1 2; do echo '--- block ${nth + 1} (${block.language})' >&$out; done\n${run(block, places)}`,
  );
  return `set -eo pipefail\n${parts.join('')}`;
}

/** The stand-ins as programs, by name. */
export function standIns(): [name: string, text: string][] {
  return Object.entries(STAND_INS).map(([name, [reason, instead = '']]) => [
    name,
    `#!/bin/sh\n# ${name} ${reason}\n${instead}\n`,
  ]);
}
