import { type Sink, SinkError } from '../sink.ts';
import { smallBatches } from './harness.ts';

/** Lets every fifth call of a sink fail, every other time after it was carried out. */
export function everyFifthFails(sink: Sink): Partial<Sink> {
  let calls = 0;
  const failing =
    <Given extends unknown[], T>(call: (...given: Given) => Promise<T>) =>
    async (...given: Given): Promise<T> => {
      calls++;
      const failure = new SinkError('unavailable', 'the check lets this call fail');
      if (calls % 10 === 5) throw failure;
      const result = await call(...given);
      if (calls % 10 === 0) throw failure;
      return result;
    };
  return {
    ...smallBatches(10)(sink),
    open: failing(sink.open.bind(sink)),
    deliver: failing(sink.deliver.bind(sink)),
    ...(sink.fillBegins && { fillBegins: failing(sink.fillBegins.bind(sink)) }),
    ...(sink.fillEnds && { fillEnds: failing(sink.fillEnds.bind(sink)) }),
    ...(sink.recheck && { recheck: failing(sink.recheck.bind(sink)) }),
  };
}
