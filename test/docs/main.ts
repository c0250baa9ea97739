import { readFileSync, writeFileSync } from 'node:fs';
import { GENERATED_PAGES } from './generated-pages.ts';

for (const [path, write] of Object.entries(GENERATED_PAGES))
  writeFileSync(path, await write(readFileSync(path, 'utf8')));
