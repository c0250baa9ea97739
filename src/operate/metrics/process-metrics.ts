import type { Meter } from '@opentelemetry/api';
import { VERSION } from '../../version.ts';
import type { ThreadFigures } from './thread-figures.ts';

/**
 * Observes this process, by the names that Prometheus's client libraries share.
 * @param figures reads the figures of the thread that does the work of the process
 */
export function observeProcess(meter: Meter, figures: () => Promise<ThreadFigures>): void {
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
  };
  const cpu = meter.createObservableCounter('process_cpu_seconds_total', {
    description: 'Processor time that the process has used.',
  });
  meter.addBatchObservableCallback(
    async (result) => {
      const { heapBytes, late } = await figures();
      const { user, system } = process.cpuUsage();
      result.observe(observed.build, 1, { version: VERSION, node: process.versions.node });
      result.observe(observed.start, Math.round(Date.now() / 1000 - process.uptime()));
      result.observe(observed.rss, process.memoryUsage().rss);
      result.observe(observed.heap, heapBytes);
      result.observe(cpu, (user + system) / 1e6);
      for (const { percentile, seconds } of late) result.observe(observed.delay, seconds, { percentile });
    },
    [...Object.values(observed), cpu],
  );
}
