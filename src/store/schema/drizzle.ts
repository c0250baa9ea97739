import { createRequire } from 'node:module';

/*
 * Loads drizzle-orm in its CommonJS build. Its ES modules are a thousand small files, and newer versions of Node.js
 * keep memory for each: importing them takes 200 MB on Node.js 24, and this build takes 20 MB (8 MB either way on 20).
 */
const load = createRequire(import.meta.url);

export const { eq, getTableColumns, sql } = load('drizzle-orm') as typeof import('drizzle-orm');
export const { drizzle } = load('drizzle-orm/better-sqlite3') as typeof import('drizzle-orm/better-sqlite3');

export const { migrate } = load(
  'drizzle-orm/better-sqlite3/migrator',
) as typeof import('drizzle-orm/better-sqlite3/migrator');

export const { blob, index, integer, primaryKey, real, sqliteTable, text } = load(
  'drizzle-orm/sqlite-core',
) as typeof import('drizzle-orm/sqlite-core');
