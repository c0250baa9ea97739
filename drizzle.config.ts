import { defineConfig } from 'drizzle-kit';

export default defineConfig({
  dialect: 'sqlite',
  schema: ['./src/store/schema/schema.ts', './src/store/schema/sink-tables.ts'],
  out: './drizzle',
});
