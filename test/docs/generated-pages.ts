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
  'docs/stores/mysql.md': withFieldTables,
  'docs/stores/postgres.md': withFieldTables,
  'docs/licenses.md': licensesPage,
  'docs/dev/interface.md': (page) => renderInterface(page, readRuleTags()),
  'schemas/event.json': eventSchemaFile,
};
