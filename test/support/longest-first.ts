import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files that take half a minute or more. */
const LONG = [
  'life/life',
  'simulate/simulate',
  'relay/kill',
  'relay/contract',
  'sync/kill',
  'sync/two-daemons',
  'sync/pace',
  'store/other-programs',
  'store/same-file',
];

/** Starts the longest files first, because a long file that starts last leaves the other workers idle. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rankOf = ({ moduleId, project }: TestSpecification): number => {
      const rank = LONG.findIndex((name) => moduleId.endsWith(`/test/${name}.test.ts`));
      if (rank !== -1) return rank;
      // Consecutively, because a worker's process is reused only for the next file.
      return project.config.isolate ? LONG.length : LONG.length + 1;
    };
    return (await super.sort(files)).toSorted((a, b) => rankOf(a) - rankOf(b));
  }
}
