import { subscribe } from '@catchword/base/telemetry';
import type { Rate } from '@catchword/pace/pace';
import type { Meter } from '@opentelemetry/api';

/** Upper bounds of the buckets of a request's duration, seconds. */
const REQUEST_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
/** Upper bounds of the buckets of an applied batch's duration, seconds. */
const APPLY_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

/** Counts what this thread does. @param servesHttp whether readers connect to it @returns a function that ends it */
export function countPipeline(meter: Meter, rateLimit: Rate | null, servesHttp: boolean): () => void {
  const requests = meter.createCounter('catchword_requests_total', {
    description: 'Requests to the service that this process made, by outcome: ok, or the code of the error.',
  });
  const duration = meter.createHistogram('catchword_request_duration_seconds', {
    description: 'How long requests to the service took, body included.',
    advice: { explicitBucketBoundaries: REQUEST_SECONDS },
  });
  const apply = meter.createHistogram('catchword_apply_duration_seconds', {
    description: 'How long transactions took that apply pages.',
    advice: { explicitBucketBoundaries: APPLY_SECONDS },
  });
  const limit = meter.createObservableGauge('catchword_request_limit_per_second', {
    description: 'Requests to the service that CATCHWORD_RATE_LIMIT allows; absent without a limit.',
  });
  const queue = meter.createObservableGauge('catchword_queue_pages', {
    description: 'Pages that the run of this process has asked for and not received.',
  });
  const closed = meter.createCounter('catchword_http_connections_closed_total', {
    description: 'Connections without a request that the HTTP server closed: silent, or too many at once.',
  });
  // A rate needs the value before the first event.
  for (const outcome of ['ok', 'SOURCE_RATE_LIMITED']) requests.add(0, { outcome });
  for (const why of servesHttp ? ['silent', 'too many'] : []) closed.add(0, { why });
  let waiting = 0;
  queue.addCallback((result) => result.observe(waiting));
  if (rateLimit !== null) {
    const perSecond = rateLimit.requests / (rateLimit.windowMs / 1000);
    limit.addCallback((result) => result.observe(perSecond));
  }

  return subscribe((measure) => {
    if (measure.of === 'queue') {
      waiting = measure.pages;
      return;
    }
    if (measure.of === 'connection') {
      closed.add(1, { why: measure.why });
      return;
    }
    const histogram = measure.of === 'request' ? duration : apply;
    histogram.record(measure.ms / 1000);
    if (measure.of === 'request') requests.add(1, { outcome: measure.outcome });
  });
}
