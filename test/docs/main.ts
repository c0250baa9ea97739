import { readFileSync, writeFileSync } from 'node:fs';
import { withFieldTables } from './field-tables.ts';
import { readRuleTags, renderInterface } from './interface-page.ts';
import { licensesPage } from './licenses.ts';
import { commandsPage, eventSchemaFile, settingsPage } from './reference.ts';

const INTERFACE = 'docs/dev/interface.md';

writeFileSync('docs/commands.md', await commandsPage());
writeFileSync('docs/settings.md', settingsPage());
for (const page of ['docs/sql.md', 'docs/sinks.md']) writeFileSync(page, withFieldTables(readFileSync(page, 'utf8')));
writeFileSync('docs/licenses.md', licensesPage());
writeFileSync('schemas/event.json', eventSchemaFile());
writeFileSync(INTERFACE, renderInterface(readFileSync(INTERFACE, 'utf8'), readRuleTags()));
