import { messageOf } from '@catchword/base/errors';
import { VERSION } from '@catchword/base/version';
import type { Rate } from '@catchword/pace/pace';
import type { Meter } from '@opentelemetry/api';
import { PrometheusSerializer } from '@opentelemetry/exporter-prometheus';
import { MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics';
import { type MirrorMetricsOptions, observeMirror } from './mirror-metrics.ts';
import { countPipeline } from './pipeline-metrics.ts';
import { measureThread, type ThreadFigures } from './thread-figures.ts';

/** Collects only when it is asked to; the HTTP server is ours. */
class OnDemandReader extends MetricReader {
  protected override async onForceFlush(): Promise<void> {}
  protected override async onShutdown(): Promise<void> {}
}

export interface MetricsOptions {
  /** CATCHWORD_RATE_LIMIT; null without a limit. */
  readonly rateLimit: Rate | null;
  /** The mirror whose state is shown; undefined in roles that do not show it. */
  readonly mirror?: MirrorMetricsOptions;
  /** Figures of another thread, which does the work of the process; default: of this one. */
  readonly figures?: (() => Promise<ThreadFigures>) | undefined;
}

/** Observes this process, by the names that Prometheus's client libraries share. */
function observeProcess(meter: Meter, figures: () => Promise<ThreadFigures>): void {
  const gauge = (name: string, description: string) => meter.createObservableGauge(name, { description });
  const observed = {
    build: gauge('catchword_build_info', 'Always 1; its labels are the versions of catchword and Node.'),
    start: gauge('process_start_time_seconds', 'When the process started, in seconds since 1970.'),
    rss: gauge('process_resident_memory_bytes', 'Memory that the process holds.'),
    heap: gauge('nodejs_heap_size_used_bytes', 'Memory that live and not yet collected JavaScript objects take.'),
    delay: gauge(
      'nodejs_eventloop_delay_seconds',
      'How late timers of the process fired since the previous scrape, by percentile.',
    ),
    cpu: meter.createObservableCounter('process_cpu_seconds_total', {
      description: 'Processor time that the process has used.',
    }),
  };
  meter.addBatchObservableCallback(async (result) => {
    const { heapBytes, late } = await figures();
    const { user, system } = process.cpuUsage();
    result.observe(observed.build, 1, { version: VERSION, node: process.versions.node });
    result.observe(observed.start, Math.round(Date.now() / 1000 - process.uptime()));
    result.observe(observed.rss, process.memoryUsage().rss);
    if (heapBytes !== null) result.observe(observed.heap, heapBytes);
    result.observe(observed.cpu, (user + system) / 1e6);
    for (const { percentile, seconds } of late) result.observe(observed.delay, seconds, { percentile });
  }, Object.values(observed));
}

export type Metrics = ReturnType<typeof startMetrics>;

export const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** Starts to measure this process. docs/metrics.md lists the metrics. */
export function startMetrics({ rateLimit, mirror, figures }: MetricsOptions) {
  const reader = new OnDemandReader();
  const provider = new MeterProvider({ readers: [reader] });
  const meter = provider.getMeter('catchword');
  const own = measureThread();
  const stops = [countPipeline(meter, rateLimit, mirror !== undefined), own.stop];
  observeProcess(meter, figures ?? (async () => own.take()));
  if (mirror !== undefined) observeMirror(meter, mirror);
  const serializer = new PrometheusSerializer(undefined, false, undefined, true, true);
  return {
    /** @returns the current figures in Prometheus's text format */
    text: async (): Promise<string> => {
      const { resourceMetrics, errors } = await reader.collect();
      if (errors.length > 0) throw new Error(errors.map(messageOf).join('; '), { cause: errors[0] });
      return serializer.serialize(resourceMetrics);
    },
    /** Ends all measurements. */
    close: async (): Promise<void> => {
      for (const stop of stops) stop();
      await provider.shutdown();
    },
  };
}
