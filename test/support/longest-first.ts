import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Each takes half a minute or more. */
const LONG = [
  'life/life',
  'simulate/simulate',
  'relay/kill',
  'relay/contract',
  'sync/kill',
  'sync/two-daemons',
  'sync/pace',
  'store/other-programs',
];

/** Begins with what is long, because a long file that is begun last keeps the other workers waiting. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rankOf = ({ moduleId, project }: TestSpecification): number => {
      const rank = LONG.findIndex((name) => moduleId.endsWith(`/test/${name}.test.ts`));
      if (rank !== -1) return rank;
      // Together: a process is kept only for a file that comes next.
      return project.config.isolate ? LONG.length : LONG.length + 1;
    };
    return (await super.sort(files)).toSorted((a, b) => rankOf(a) - rankOf(b));
  }
}
