// @module-tag slow
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { prometheusAvailable, startPrometheus } from '@catchword/testing/prometheus';
import { freePort } from '@catchword/testing/server';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startService } from '../support/cli.ts';
import { place } from '../support/place.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const ALERTS = readFileSync(join(ROOT, 'ops/alerts.yml'), 'utf8');
const DASHBOARD = JSON.parse(readFileSync(join(ROOT, 'ops/grafana.json'), 'utf8')) as {
  panels: { title: string; targets?: { expr: string }[] }[];
};
const TOKEN = 'a-token-for-prometheus';

const expressions = DASHBOARD.panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }) => ({ title, expr: expr.replaceAll('$job', 'catchword') })),
);

const DOCUMENTED = readFileSync(join(ROOT, 'docs/metrics.md'), 'utf8').match(/^\| `.*$/gm);

/** What a scrape says about its metrics, as rows of the table in docs/metrics.md. */
function metricRows(text: string): string[] {
  const metrics = [...text.matchAll(/^# HELP (\S+) (.+)\n# TYPE \S+ (\S+)\n(.*)$/gm)];
  return metrics.map(([, name = '', help, type, sample = '']) => {
    const labels = [...sample.matchAll(/[{,](\w+)="/g)].map(([, label]) => label).filter((label) => label !== 'le');
    return `| \`${name}\` | ${type} | ${labels.map((label) => `\`${label}\``).join(', ')} | ${help} |`;
  });
}

/** Metrics named in rules or panels. */
function metricsIn(text: string): string[] {
  return [...text.matchAll(/\b(?:catchword|process|nodejs)_[a-z_]+/g)].map(([name]) => name);
}

/** Starts a daemon with a sink that mirrors a sandbox, and a Prometheus that scrapes it. */
async function watchedDaemon() {
  const port = await freePort();
  const { settings, directory } = await place(
    { items: 2_500 },
    {
      CATCHWORD_HTTP_PORT: `${port}`,
      CATCHWORD_HTTP_TOKEN: TOKEN,
      CATCHWORD_RATE_LIMIT: '1000/s',
      CATCHWORD_SINK_SHOP: 'jsonl:shop.jsonl?verify=1h',
      LOG_LEVEL: 'info',
    },
  );
  const daemon = startService(['daemon'], settings, directory);
  await daemon.shows('run complete');
  const prometheus = await startPrometheus(`127.0.0.1:${port}`, TOKEN);
  onTestFinished(() => prometheus.stop());
  async function read<T>(path: string): Promise<T> {
    const response = await fetch(`${prometheus.url}/api/v1/${path}`);
    const { status, data, error } = (await response.json()) as { status: string; data: T; error?: string };
    if (status !== 'success') throw new Error(error);
    return data;
  }
  async function query(expr: string): Promise<{ metric: Record<string, string>; value: [number, string] }[]> {
    return (await read<{ result: [] }>(`query?query=${encodeURIComponent(expr)}`)).result;
  }
  return { url: `http://127.0.0.1:${port}`, read, query };
}

describe.skipIf(!prometheusAvailable)('a real Prometheus', { tags: ['stores'] }, () => {
  it('scrapes a daemon, and knows every metric of the dashboard and the alerts', async () => {
    const { url, read, query } = await watchedDaemon();
    await expect.poll(async () => (await query('catchword_sink_delivered_events_total'))[0]?.value[1]).toBe('2500');
    expect((await query('catchword_products'))[0]?.value[1]).toBe('2500');
    expect((await query('catchword_changes_total{op="created"}'))[0]?.value[1]).toBe('2500');
    expect(Number((await query('catchword_requests_total{outcome="ok"}'))[0]?.value[1])).toBeGreaterThan(2);

    await expect.poll(async () => (await query('catchword_sink_verify_differences'))[0]?.value[1]).toBe('0');
    const known = new Set(await read<string[]>('label/__name__/values'));
    const used = new Set(metricsIn(`${ALERTS} ${expressions.map(({ expr }) => expr).join(' ')}`));
    expect(used.size).toBeGreaterThan(20);
    expect([...used].filter((name) => !known.has(name))).toEqual([]);

    // A rate needs two scrapes.
    const empty = async () => {
      const results = await Promise.all(expressions.map(async (one) => ({ ...one, points: await query(one.expr) })));
      return results.filter(({ points }) => points.length === 0).map(({ title, expr }) => ({ title, expr }));
    };
    await expect.poll(empty).toEqual([]);
    const [rate] = await query('max(catchword_request_limit_per_second)');
    expect(rate?.value[1]).toBe('1000');

    const response = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${TOKEN}` } });
    expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    const text = await response.text();
    expect(execFileSync('promtool', ['check', 'metrics'], { input: text, encoding: 'utf8' })).toBe('');
    expect((await fetch(`${url}/metrics`)).status).toBe(401);
    expect(metricRows(text)).toEqual(DOCUMENTED);
  });

  it('accepts the alerts, and fires each when it should', () => {
    const promtool = (...args: string[]) => execFileSync('promtool', args, { cwd: ROOT, encoding: 'utf8' });
    expect(promtool('check', 'rules', 'ops/alerts.yml')).toContain('SUCCESS: 12 rules found');
    expect(promtool('test', 'rules', 'test/ops/alerts-test.yml')).toContain('SUCCESS');
  });
});
