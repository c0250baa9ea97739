import { type ChildProcess, fork } from 'node:child_process';

export interface SeedWork<Report> {
  /** The program that plays each seed that it is sent, and sends a report of it. */
  readonly program: string;
  readonly args?: readonly string[];
  readonly count: number;
  /** Seeds of one process: the store keeps its statements for as long as the process lives. */
  readonly seedsEach: number;
  /** @returns undefined if no seed is left */
  readonly nextSeed: () => number | undefined;
  /** @returns whether to go on */
  readonly take: (report: Report) => boolean;
}

/** Plays seeds in `count` processes at a time. */
export async function playInWorkers<Report>(work: SeedWork<Report>): Promise<void> {
  const { program, args = [], count, seedsEach, nextSeed, take } = work;
  const workers = new Set<ChildProcess>();
  let isOver = false;

  /** Plays this seed and the next ones in one process. */
  function play(first: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const worker = fork(program, args, { execArgv: ['--import', 'tsx'] });
      workers.add(worker);
      let left = seedsEach;
      function give(seed: number | undefined): void {
        if (seed !== undefined) worker.send(seed);
        else if (workers.delete(worker)) worker.disconnect();
      }
      worker.on('error', reject);
      worker.on('exit', (code) =>
        workers.delete(worker) ? reject(new Error(`a process ended with ${code}`)) : resolve(),
      );
      worker.on('message', (report: Report) => {
        if (isOver) return;
        isOver = !take(report);
        if (!isOver) return give(--left > 0 ? nextSeed() : undefined);
        for (const one of workers) one.kill();
        workers.clear();
      });
      give(first);
    });
  }

  async function playInTurn(): Promise<void> {
    for (let seed = nextSeed(); seed !== undefined && !isOver; seed = nextSeed()) await play(seed);
  }
  await Promise.all(Array.from({ length: count }, playInTurn));
}
