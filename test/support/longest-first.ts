import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files that share a process with others and take ten seconds or more. */
const LONG = [
  'many/chaos',
  'many/hosts',
  'store/other-programs',
  'simulate/simulate',
  'sync/two-daemons',
  'web/event-source',
  'sync/other-source',
  'sync/pace',
  'relay/contract',
  'relay/kill',
  'commands/source',
  'sync/settle',
  'sync/kill',
  'sync/load',
  'schedule/due',
  'store/same-file',
  'web/stream',
  'web/slow-reader',
  'commands/credentials',
];

/** Starts the longest files first, because a long file that starts last leaves the other workers idle. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rankOf = ({ moduleId, project }: TestSpecification): number => {
      // First and together, because a worker's process is reused only for the next file.
      if (project.config.isolate) return -1;
      const rank = LONG.findIndex((name) => moduleId.endsWith(`/test/${name}.test.ts`));
      return rank === -1 ? LONG.length : rank;
    };
    return (await super.sort(files)).toSorted((a, b) => rankOf(a) - rankOf(b));
  }
}
