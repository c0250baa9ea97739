import { type Clock, systemClock } from '@catchword/base/clock';

/** A clock for a sandbox with a latency: it answers the first `count` requests, and the others when it is released. */
export function holdingClock(count: number): { readonly clock: Clock; readonly release: () => void } {
  let asked = 0;
  let isHeld = true;
  const sleep: Clock['sleep'] = async (ms, signal) => {
    const isAnswered = ++asked <= count;
    do await systemClock.sleep(ms, signal);
    while (isHeld && !isAnswered);
  };
  return {
    clock: { ...systemClock, sleep },
    release: () => {
      isHeld = false;
    },
  };
}
