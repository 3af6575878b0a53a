/** docs/metrics.md has the standard metrics and their labels as the agent writes them. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { MeshMetrics } from '../src/agent/access-logs/mesh-metrics.ts';
import {
  connectionLabels,
  requestLabels,
  standardBuckets,
  standardMetricIds,
  standardMetrics,
} from '../src/model/standard-metrics/standard-metrics.ts';
import { packageRoot } from '../src/runtime/package-root.ts';

const update = process.env.UPDATE_TABLES === '1';
const file = join(packageRoot(), 'docs/metrics.md');
const [begin, end] = ['<!-- generated: UPDATE_TABLES=1 vitest run test/metrics-page.test.ts -->\n', '<!-- end -->'];

/** Panels of Istio's dashboards that query the metric (spec/standard-metrics.md §6). */
const dashboards: Readonly<Record<string, string>> = {
  istio_requests_total: 'mesh, service, workload',
  istio_request_duration_milliseconds: 'mesh, service, workload',
  istio_request_bytes: 'service, workload',
  istio_response_bytes: 'service, workload',
  istio_tcp_connections_opened_total: '–',
  istio_tcp_connections_closed_total: '–',
  istio_tcp_sent_bytes_total: 'mesh, service, workload',
  istio_tcp_received_bytes_total: 'mesh, service, workload',
};

function table(): string {
  const rows = standardMetricIds.map((id) => {
    const { name, type, protocol, meaning } = standardMetrics[id];
    const labels = protocol === 'http' ? 'all' : 'all but those of requests';
    return `| \`${name}\` | \`${id}\` | ${type} | ${labels} | ${meaning} | ${dashboards[name]} |`;
  });
  const code = (names: readonly (string | number)[]): string => names.map((name) => `\`${name}\``).join(', ');
  return `| metric | Telemetry API | type | labels | meaning | Istio's dashboards |
|---|---|---|---|---|---|
${rows.join('\n')}

Labels: ${code(connectionLabels)}; of requests also ${code(requestLabels)}.

Buckets of histograms (milliseconds or bytes): ${code(standardBuckets)}, \`+Inf\`.
`;
}

/** What the agent says about its own counting, as it is written. */
function ownMetrics(): string {
  const own = { workload: '', namespace: '', service: '', revision: '', app: '', version: '', cluster: '' };
  const text = [...new MeshMetrics({ own, version: '' }).text()].join('');
  const rows = [...text.matchAll(/# HELP (\w+) (.*)\n# TYPE \w+ (\w+)/g)].map(
    ([, name, help, type]) => `| \`${name}\` | ${type} | ${help} |`,
  );
  return `\n| metric | type | meaning |\n|---|---|---|\n${rows.join('\n')}\n`;
}

test('docs/metrics.md has the metrics as they are counted', () => {
  const text = readFileSync(file, 'utf8');
  const from = text.indexOf(begin) + begin.length;
  const current = `${text.slice(0, from)}\n${table()}${ownMetrics()}\n${text.slice(text.indexOf(end))}`;
  if (update) writeFileSync(file, current);
  expect(readFileSync(file, 'utf8'), 'run with UPDATE_TABLES=1').toBe(current);
});

test('each standard metric has its dashboards', () => {
  expect(Object.keys(dashboards).sort()).toEqual(standardMetricIds.map((id) => standardMetrics[id].name).sort());
});
