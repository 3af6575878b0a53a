/** docs/metrics.md has all metrics with their labels and the dashboards that use them. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { alerts, dashboards } from '../deploy/dashboards/definitions.ts';
import {
  connectionLabels,
  requestLabels,
  standardBuckets,
  standardMetricIds,
  standardMetrics,
} from '../src/model/standard-metrics/standard-metrics.ts';
import type { MetricDefinition } from '../src/runtime/output/metric-definitions.ts';
import { packageRoot } from '../src/runtime/package-root.ts';
import { istioQueries } from './dashboards/istio-queries.ts';
import { agentMetrics, controlPlaneMetrics, isProcessMetric, meshMetrics } from './dashboards/known-metrics.ts';
import { familyOf, namesIn } from './dashboards/names-in-query.ts';

const update = process.env.UPDATE_TABLES === '1';
const file = join(packageRoot(), 'docs/metrics.md');

/** Dashboards and alerts by the metric that they query. */
function usesOf(metricDefinitions: readonly MetricDefinition[]): (name: string) => string {
  const names = new Set(metricDefinitions.map(({ name }) => name));
  const uses = new Map<string, Set<string>>();
  const add = (query: string, use: string): void => {
    for (const { name } of namesIn(query).metrics) {
      const family = familyOf(name, (one) => names.has(one));
      uses.set(family, (uses.get(family) ?? new Set()).add(use));
    }
  };
  for (const { dashboard, query } of istioQueries()) add(query, `Istio: ${dashboard}`);
  for (const [name, { rows, variables }] of Object.entries(dashboards)) {
    for (const { queries } of rows.flatMap(({ panels }) => panels)) {
      for (const { expression } of queries) add(expression, name);
    }
    for (const { metric } of variables) add(metric, name);
  }
  for (const { name, value } of alerts) add(value, `\`${name}\``);
  return (name) => [...(uses.get(name) ?? ['–'])].join(', ');
}

const code = (names: readonly (string | number)[]): string => names.map((name) => `\`${name}\``).join(', ');

function tableOf(metrics: readonly MetricDefinition[], usesOfMetric: (name: string) => string): string {
  const rows = [...metrics]
    .filter((metric) => !isProcessMetric(metric))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map(({ name, type, labels, help }) => {
      return `| \`${name}\` | ${type} | ${code(labels)} | ${help.replace(/\.$/, '')} | ${usesOfMetric(name)} |`;
    });
  return `\n| metric | type | labels | meaning | used by |\n|---|---|---|---|---|\n${rows.join('\n')}\n\n`;
}

function standardTable(usesOfMetric: (name: string) => string): string {
  const rows = standardMetricIds.map((id) => {
    const { name, type, protocol, meaning } = standardMetrics[id];
    const labels = protocol === 'http' ? 'all' : 'all but those of requests';
    return `| \`${name}\` | \`${id}\` | ${type} | ${labels} | ${meaning} | ${usesOfMetric(name)} |`;
  });
  return `
| metric | Telemetry API | type | labels | meaning | used by |
|---|---|---|---|---|---|
${rows.join('\n')}

Labels: ${code(connectionLabels)}; of requests also ${code(requestLabels)}.

Buckets of histograms (milliseconds or bytes): ${code(standardBuckets)}, \`+Inf\`.

`;
}

test('docs/metrics.md lists the metrics of both programs with their definitions', async () => {
  const [agent, controlPlane] = [await agentMetrics(), controlPlaneMetrics()];
  const uses = usesOf([...agent, ...controlPlane, ...meshMetrics()]);
  const tables: Readonly<Record<string, string>> = {
    standard: standardTable(uses),
    agent: tableOf(agent, uses),
    'control plane': tableOf(controlPlane, uses),
  };
  let text = readFileSync(file, 'utf8');
  for (const [name, content] of Object.entries(tables)) {
    const startMarker = `<!-- generated ${name}: UPDATE_TABLES=1 vitest run test/metrics-page.test.ts -->\n`;
    const from = text.indexOf(startMarker) + startMarker.length;
    expect(from, name).toBeGreaterThan(startMarker.length);
    text = text.slice(0, from) + content + text.slice(text.indexOf('<!-- end -->', from));
  }
  if (update) writeFileSync(file, text);
  expect(readFileSync(file, 'utf8'), 'run with UPDATE_TABLES=1').toBe(text);
});

test('each metric of a program has one definition and a meaning', async () => {
  for (const metrics of [await agentMetrics(), controlPlaneMetrics()]) {
    const names = metrics.map(({ name }) => name);
    expect(names.filter((name, nameIndex) => names.indexOf(name) !== nameIndex)).toEqual([]);
    expect(metrics.filter(({ name, help, type }) => ['', name].includes(help.trim()) || type === '')).toEqual([]);
  }
});

test('each metric that an Istio dashboard queries exists with its labels', async () => {
  const all = [...(await agentMetrics()), ...controlPlaneMetrics(), ...meshMetrics()];
  const labelsByMetric = new Map(all.map(({ name, labels }) => [name, labels]));
  const problems = istioQueries().flatMap(({ query }) => {
    const { metrics, grouping } = namesIn(query);
    return metrics.flatMap(({ name, labels }) => {
      const metricLabels = labelsByMetric.get(familyOf(name, (one) => labelsByMetric.has(one)));
      if (metricLabels === undefined) return [`${name} in ${query}`];
      return [...labels, ...grouping].filter((label) => label !== 'le' && !metricLabels.includes(label));
    });
  });
  expect(problems).toEqual([]);
});
