import { writeFileSync } from 'node:fs';
import { commandsPage, settingsPage } from './reference.ts';

writeFileSync('docs/commands.md', await commandsPage());
writeFileSync('docs/settings.md', settingsPage());
