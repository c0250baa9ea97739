import Database from 'better-sqlite3';

/**
 * Keeps databases that tests open without the store, and their statements, from being garbage-collected on Node.js 24:
 * see src/store/schema/statements.ts.
 */
const kept: unknown[] = [];
type Method = (this: Database.Database, ...values: readonly unknown[]) => unknown;
const { prepare, close } = Database.prototype as unknown as { readonly prepare: Method; readonly close: Method };
const [major = 0] = process.versions.node.split('.').map(Number);

if (major >= 24) {
  Object.assign(Database.prototype, {
    prepare(this: Database.Database, text: string) {
      const statement = prepare.call(this, text);
      kept.push(this, statement);
      return statement;
    },
    close(this: Database.Database) {
      kept.push(this);
      return close.call(this);
    },
  });
}
