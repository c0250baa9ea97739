import { statSync } from 'node:fs';
import { type Copy, copyApart, copyHere } from '../../../store/file/copy-subprocess.ts';
import type { CommandContext } from './command-context.ts';
import { progressBar } from './show-progress.ts';

/** How often the bar looks at the copy; milliseconds. */
const LOOK_MS = 200;

function bytesOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** Copies a mirror, and shows a bar on a terminal. The copy may be smaller than the mirror: it has no free pages. */
export function copyWithProgress({ apart, stderr }: CommandContext): Copy {
  return async (from, to, signal) => {
    const bar = progressBar(stderr, 'copying and checking {bar} {percentage}%');
    bar?.start(Math.max(1, bytesOf(from)), 0);
    const timer = setInterval(() => bar?.update(bytesOf(to)), LOOK_MS);
    try {
      return await (apart === true ? copyApart : copyHere)(from, to, signal);
    } finally {
      clearInterval(timer);
      bar?.stop();
    }
  };
}
