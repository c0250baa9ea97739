import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Meter } from '@opentelemetry/api';
import { VERSION } from '../version.ts';

/** How often the event loop is looked at, milliseconds. Node counts it as part of the delay. */
const RESOLUTION_MS = 10;

const PERCENTILES = [50, 99, 100];

/** Observes this process, by the names that Prometheus's client libraries share. @returns a function that ends it */
export function observeProcess(meter: Meter): () => void {
  const gauge = (name: string, description: string) => meter.createObservableGauge(name, { description });
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delay.enable();
  const observed = {
    build: gauge('catchword_build_info', 'Always 1; its labels are the versions of catchword and Node.'),
    start: gauge('process_start_time_seconds', 'When the process started, in seconds since 1970.'),
    rss: gauge('process_resident_memory_bytes', 'Memory that the process holds.'),
    heap: gauge('nodejs_heap_size_used_bytes', 'Memory that live and not yet collected JavaScript objects take.'),
    delay: gauge(
      'nodejs_eventloop_delay_seconds',
      'How late timers of the process fired since the previous scrape, by percentile.',
    ),
  };
  const cpu = meter.createObservableCounter('process_cpu_seconds_total', {
    description: 'Processor time that the process has used.',
  });
  meter.addBatchObservableCallback(
    (result) => {
      const { rss, heapUsed } = process.memoryUsage();
      const { user, system } = process.cpuUsage();
      result.observe(observed.build, 1, { version: VERSION, node: process.versions.node });
      result.observe(observed.start, Math.round(Date.now() / 1000 - process.uptime()));
      result.observe(observed.rss, rss);
      result.observe(observed.heap, heapUsed);
      result.observe(cpu, (user + system) / 1e6);
      for (const percentile of PERCENTILES) {
        const late = delay.count === 0 ? 0 : delay.percentile(percentile) / 1e9 - RESOLUTION_MS / 1000;
        result.observe(observed.delay, Math.max(0, late), { percentile });
      }
      delay.reset();
    },
    [...Object.values(observed), cpu],
  );
  return () => void delay.disable();
}
