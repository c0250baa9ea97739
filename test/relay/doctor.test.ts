import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it, onTestFinished } from 'vitest';
import { apartText } from '../../src/relay/kinds/kinds.ts';
import { runHere } from '../support/in-process.ts';
import { books, configAt, fedBefore, temporaryMirror } from './feeding.ts';
import { KINDS } from './target-kinds.ts';

for (const { name, tags, start, prepare, variants } of KINDS.filter(
  ({ can, isAvailable }) => isAvailable && can.includes('mark'),
)) {
  it(`doctor says that another mirror feeds a store of ${name}, and how to keep them apart`, {
    tags: [...tags],
  }, async () => {
    const server = await start();
    onTestFinished(() => server.stop());
    const { harness, target } = await fedBefore(prepare(server.port, variants.at(-1) ?? ''), 3);
    const checked = async (db: string) => {
      const secret = target.secret === undefined ? {} : { CATCHWORD_SINK_TESTED_SECRET: target.secret };
      const settings = { CATCHWORD_SINK_TESTED: target.url, CATCHWORD_DB: db, ...secret };
      const { stdout } = await runHere(['doctor', '--json'], settings, temporaryDirectory());
      return (JSON.parse(stdout) as { check: string; level: string; text: string }[]).find(
        ({ check }) => check === 'sink',
      );
    };
    expect(await checked(harness.store.path)).toMatchObject({ level: 'ok' });
    const other = temporaryMirror();
    const refused = `was fed by another mirror: use ${apartText(configAt(target.url, target.secret).kind)}`;
    const found = { level: 'failed', text: expect.stringContaining(refused) };
    expect(await checked(other.store.path)).toMatchObject(found);
    // Before the first load this operator has no mirror yet.
    expect(await checked(`${temporaryDirectory()}/none.db`)).toMatchObject(found);
    // The relay says the same, and doctor lets what an operator has decided.
    other.change(books(2, 2));
    await other.stopped(configAt(target.url, target.secret));
    expect(other.sink().error).toContain(refused);
    await other.stop();
  });
}
