import { type Sink, SinkError } from '@catchword/sink-kit/sink';
import { smallBatches } from './harness.ts';

/** Lets calls of a sink fail. @param fate of the nth call: it fails before it is carried out, or after it */
function failingCalls(fate: (nth: number) => 'before' | 'after' | undefined) {
  let calls = 0;
  return <Given extends unknown[], T>(call: (...given: Given) => Promise<T>) =>
    async (...given: Given): Promise<T> => {
      calls++;
      const how = fate(calls);
      const failure = new SinkError('unavailable', 'the check lets this call fail');
      if (how === 'before') throw failure;
      const result = await call(...given);
      if (how === 'after') throw failure;
      return result;
    };
}

/** Lets every fifth call of a sink fail, every other time after it was carried out. */
export function everyFifthFails(sink: Sink): Partial<Sink> {
  const failing = failingCalls((nth) => (nth % 10 === 5 ? 'before' : nth % 10 === 0 ? 'after' : undefined));
  return {
    ...smallBatches(10)(sink),
    open: failing(sink.open.bind(sink)),
    deliver: failing(sink.deliver.bind(sink)),
    ...(sink.apply && { apply: failing(sink.apply.bind(sink)) }),
    ...(sink.recheck && { recheck: failing(sink.recheck.bind(sink)) }),
  };
}

/** Lets each of the calls that begin and end a fill fail, first before it is carried out, then after it. */
export function everyApplyFails(): (sink: Sink) => Partial<Sink> {
  const failing = failingCalls((nth) => (['before', 'after', undefined] as const)[(nth - 1) % 3]);
  return (sink) => ({
    ...smallBatches(7)(sink),
    ...(sink.apply && { apply: failing(sink.apply.bind(sink)) }),
  });
}
