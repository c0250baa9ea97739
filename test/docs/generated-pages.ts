import { KINDS } from '../../src/relay/kinds/kinds.ts';
import { errorsPage } from './errors-page.ts';
import { withFieldTables } from './field-tables.ts';
import { readRuleTags, renderInterface } from './interface-page.ts';
import { licensesPage } from './licenses.ts';
import { commandsPage, eventSchemaFile, settingsPage } from './reference.ts';

/** Makes the text of each generated file; a page that is in part written by hand is made from the page as it stands. */
export const GENERATED_PAGES: Readonly<Record<string, (page: string) => string | Promise<string>>> = {
  'docs/commands.md': commandsPage,
  'docs/settings.md': settingsPage,
  'docs/errors.md': errorsPage,
  'docs/sql.md': withFieldTables,
  'docs/decisions.md': withFieldTables,
  'docs/sink-list.md': withFieldTables,
  'docs/sink-trouble.md': withFieldTables,
  'docs/status.md': withFieldTables,
  'docs/sinks.md': withFieldTables,
  ...Object.fromEntries(Object.keys(KINDS).map((kind) => [`docs/stores/${kind}.md`, withFieldTables])),
  'docs/licenses.md': licensesPage,
  'docs/dev/interface.md': (page) => renderInterface(page, readRuleTags()),
  'schemas/event.json': eventSchemaFile,
};
