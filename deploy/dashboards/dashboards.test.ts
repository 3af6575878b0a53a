/** Dashboards and alert rules are current, and query existing metrics. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { agentMetrics, controlPlaneMetrics, meshMetrics } from '../../test/dashboards/known-metrics.ts';
import { familyOf, namesIn } from '../../test/dashboards/names-in-query.ts';
import { alerts, dashboards } from './definitions.ts';
import { alertExpression, generatedFiles } from './generate.ts';

const folder = join(packageRoot(), 'deploy/dashboards');

test('the dashboard and alert files equal the generated ones', () => {
  const files = generatedFiles();
  if (process.env.UPDATE_TABLES === '1') for (const [name, text] of files) writeFileSync(join(folder, name), text);
  const found = readdirSync(folder).filter((name) => /\.(?:json|yaml)$/.test(name));
  expect(found.sort()).toEqual([...files.keys()].sort());
  for (const [name, text] of files) {
    expect(readFileSync(join(folder, name), 'utf8'), 'run with UPDATE_TABLES=1').toBe(text);
  }
});

const queries = [
  ...Object.values(dashboards).flatMap(({ rows, variables }) => [
    ...rows.flatMap(({ panels }) => panels.flatMap((panel) => panel.queries.map(({ expression }) => expression))),
    ...variables.map(({ metric, label }) => `count by (${label}) (${metric})`),
  ]),
  ...alerts.map(alertExpression),
];

/** Labels that Prometheus adds at a scrape. */
const targetLabels = ['job', 'instance'];

test('each query uses only existing metrics and labels', async () => {
  const known = new Map(
    [...controlPlaneMetrics(), ...(await agentMetrics()), ...meshMetrics()].map(({ name, labels }) => [name, labels]),
  );
  const problems = queries.flatMap((query) => {
    const { metrics, grouping } = namesIn(query);
    const families = metrics.map(({ name }) => familyOf(name, (one) => known.has(one)));
    const unknown = families.filter((family) => !known.has(family));
    const all = new Set([...targetLabels, 'le', ...families.flatMap((family) => known.get(family) ?? [])]);
    const missing = grouping.filter((label) => !all.has(label));
    const ofMetric = metrics.flatMap(({ labels }, place) =>
      labels.filter((label) => ![...targetLabels, 'le', ...(known.get(families[place]!) ?? [])].includes(label)),
    );
    return [...unknown, ...missing, ...ofMetric].map((name) => `${name} in ${query}`);
  });
  expect(problems).toEqual([]);
});

test('each alert links to an existing page of the documentation', () => {
  expect(alerts.filter(({ page }) => !existsSync(join(packageRoot(), 'docs', page)))).toEqual([]);
  expect(new Set(alerts.map(({ name }) => name)).size).toBe(alerts.length);
});

test.each([
  ['sum by (a) (rate(x_total{b="1 or y", c=~"."}[5m])) or vector(0)', ['x_total'], ['b', 'c'], ['a']],
  ['histogram_quantile(0.9, sum(rate(y_bucket[5m])) by (le, d)) / 1e3 > 30 * 86400', ['y_bucket'], [], ['le', 'd']],
  ['(a{} or b) - on (c) group_left (d) e', ['a', 'b', 'e'], [], ['c', 'd']],
])('metrics and labels are extracted from %s', (query, metrics, labels, grouping) => {
  const found = namesIn(query);
  expect(found.metrics.map(({ name }) => name).sort()).toEqual(metrics);
  expect(found.metrics.flatMap((metric) => metric.labels)).toEqual(labels);
  expect(found.grouping).toEqual(grouping);
});
