/**
 * Istio's and chartpilot's dashboards in a live mesh: pods with sidecars, HTTP and TCP, mutual TLS and plaintext. Prometheus's own engine evaluates
 * the queries (`test/dashboards/promql/`). Only in the long form: `CHARTPILOT_TESTS=full`.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { alerts, dashboards } from '../../deploy/dashboards/definitions.ts';
import { alertExpression } from '../../deploy/dashboards/generate.ts';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { type DashboardQuery, istioQueries } from '../dashboards/istio-queries.ts';
import { evaluate, type QueryResult, type Scrape } from '../dashboards/promql.ts';
import { eventually } from '../harness/eventually.ts';
import { requireIptables } from '../harness/iptables.ts';
import { PodMesh, podService } from '../harness/pod-mesh.ts';
import type { NetworkSide } from '../harness/pod-network.ts';
import { endWithRunner } from '../harness/runner-watch.ts';
import { isFull } from '../harness/size-of-run.ts';

const tcpService = { host: 'echo.demo.svc.cluster.local', address: '10.96.0.11', port: 9000 } as const;

const objects = `
apiVersion: telemetry.istio.io/v1
kind: Telemetry
metadata: { name: metrics, namespace: istio-system }
spec:
  metrics: [{ providers: [{ name: prometheus }], reportingInterval: 1s }]
---
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: { name: default, namespace: demo }
spec: { mtls: { mode: PERMISSIVE } }
---
apiVersion: v1
kind: Service
metadata: { name: echo, namespace: demo }
spec: { clusterIP: ${tcpService.address}, selector: { app: sample }, ports: [{ name: tcp, port: ${tcpService.port} }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: echo-1, namespace: demo, labels: { kubernetes.io/service-name: echo } }
addressType: IPv4
ports: [{ name: tcp, port: ${tcpService.port} }]
endpoints:
  - { addresses: [10.78.0.11], conditions: { ready: true }, targetRef: { kind: Pod, name: sample-v1, namespace: demo } }
  - { addresses: [10.78.0.12], conditions: { ready: true }, targetRef: { kind: Pod, name: sample-v2, namespace: demo } }
`;

const echo = `require('node:net').createServer((peer) => peer.on('error', () => {}).pipe(peer)).listen(${tcpService.port}, '0.0.0.0')`;

/** Sends requests and opens long TCP connections; failed ones are retried. */
const traffic = `
const { connect } = require('node:net'), { get } = require('node:http');
const open = (host) => {
  const peer = connect(${tcpService.port}, host).on('error', () => {}).on('close', () => setTimeout(open, 200, host)).resume();
  setInterval(() => peer.writable && peer.write('x'.repeat(100)), 100).unref();
};
const [urls, hosts] = JSON.parse(process.argv[1]);
setInterval(() => urls.forEach((url) => get(url, (got) => got.resume()).on('error', () => {})), 100);
hosts.forEach(open);`;

let mesh: PodMesh;
const children: ChildProcess[] = [];
const scrapes: Scrape[] = [];

function run(side: NetworkSide, script: string, ...args: string[]): void {
  const [program = '', ...programArgs] = side.within([process.execPath, '-e', script, ...args]);
  const child = spawn(program, programArgs, { stdio: 'ignore', detached: true });
  endWithRunner(child);
  children.push(child);
}

async function scrape(): Promise<void> {
  const agents = Object.values(mesh.pods).map(({ name, address }) => {
    return { job: 'chartpilot-agents', instance: name, url: `http://${address}:15020/stats/prometheus` };
  });
  const plane = { job: 'chartpilot-control-plane', instance: 'istiod', url: 'http://127.0.0.1:8080/metrics' };
  for (const { url, ...labels } of [...agents, plane]) {
    const page = await mesh.outside.mustRun('curl', '--silent', '--fail', '--max-time', '20', url);
    scrapes.push({ timeMs: Date.now(), labels, text: page });
  }
}

/** Changes an object that all clients of the service receive. */
function changeConfiguration(): void {
  const file = join(mesh.root, 'mesh', 'routes.yaml');
  const text = readFileSync(file, 'utf8');
  const name = `route-${scrapes.length}`;
  writeFileSync(file, text.replace(/- name: (?:split|route-\d+)/, `- name: ${name}`));
}

const variables: Readonly<Record<string, string>> = { __rate_interval: '1m', qrep: 'destination' };
/** A variable matches all values, like "All" in Grafana. */
const filled = (query: string): string => query.replace(/\$(\w+)/g, (_, name: string) => variables[name] ?? '.*');

async function resultsOf(queries: readonly string[]): Promise<readonly QueryResult[]> {
  const { results } = await evaluate({ scrapes, queries: queries.map(filled), atMs: Date.now() });
  return results;
}

const hasData = ({ error, elements }: QueryResult): boolean => error === undefined && (elements ?? []).length > 0;

/** Panels without data: clients do not report whether their connections use mutual TLS. */
const isEmptyInIstio = ({ panel }: DashboardQuery): boolean =>
  panel.startsWith('Outbound Services') && panel.endsWith('(mTLS)');

/** Expected label values in this mesh. */
const expected: Readonly<Record<string, readonly string[]>> = {
  source_workload: ['client', 'unknown'],
  source_workload_namespace: ['demo', 'unknown'],
  destination_workload: ['sample-v1', 'sample-v2'],
  destination_workload_namespace: ['demo'],
  destination_service: [podService.host, tcpService.host],
  response_code: ['200'],
};

describe.runIf(isFull)('dashboards in a mesh under load', () => {
  beforeAll(async () => {
    requireIptables();
    mesh = await PodMesh.create();
    rmSync(join(mesh.root, 'mesh', 'peer-authentication.yaml'));
    writeFileSync(join(mesh.root, 'mesh', 'dashboards.yaml'), objects);
    await mesh.start();
    const { client, 'sample-v1': v1, 'sample-v2': v2 } = mesh.pods;
    for (const { side } of [v1, v2]) run(side, echo);
    run(
      client.side,
      traffic,
      JSON.stringify([[`http://${podService.host}/`], [tcpService.address, tcpService.address]]),
    );
    const addresses = [v1.address, v2.address];
    run(mesh.outside, traffic, JSON.stringify([addresses.map((address) => `http://${address}:8080/`), addresses]));
    await scrape();
    // A rate needs samples over most of its minute.
    await eventually(
      'pages of a minute',
      async () => {
        await sleep(5_000);
        changeConfiguration();
        await scrape();
        return scrapes.at(-1)!.timeMs - scrapes[0]!.timeMs > 70_000;
      },
      { deadlineMs: 400_000 },
    );
  }, 2_400_000);

  afterAll(async () => {
    for (const child of children) if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    await mesh?.stop();
  });

  test("have data for at least 90 % of the queries of Istio's dashboards, and only expected panels are empty", async () => {
    const queries = istioQueries();
    const results = await resultsOf(queries.map(({ query }) => query));
    const failures = results.flatMap(({ error }, queryIndex) =>
      error === undefined ? [] : [`${queries[queryIndex]!.query}: ${error}`],
    );
    expect(failures).toEqual([]);
    const emptyQueries = queries.filter((_, queryIndex) => !hasData(results[queryIndex]!));
    console.log(`queries with data: ${queries.length - emptyQueries.length} of ${queries.length}`);
    expect(emptyQueries.map(({ dashboard, panel }) => `${dashboard}: ${panel}`)).toEqual(
      queries.filter(isEmptyInIstio).map(({ dashboard, panel }) => `${dashboard}: ${panel}`),
    );
    expect(emptyQueries.length / queries.length).toBeLessThanOrEqual(0.1);
  });

  test("have this mesh's labels in the results of Istio's queries", async () => {
    const queries = istioQueries().filter(({ panel }) => !panel.startsWith('variable'));
    const results = await resultsOf(queries.map(({ query }) => query));
    const problems = results.flatMap(({ elements }, queryIndex) =>
      (elements ?? []).flatMap(({ labels }) =>
        Object.entries(labels)
          .filter(([label, value]) => expected[label]?.includes(value) === false)
          .map(([label, value]) => `${queries[queryIndex]!.panel}: ${label}=${value}`),
      ),
    );
    expect([...new Set(problems)]).toEqual([]);
    const clients =
      results[queries.findIndex(({ panel }) => panel === 'Client Workloads: requests by response code (mTLS)')]!;
    expect(clients.elements!.map(({ labels }) => labels)).toEqual([
      { source_workload: 'client', source_workload_namespace: 'demo', response_code: '200' },
    ]);
  });

  test("have data for each query of chartpilot's dashboards and alerts, and no alert fires", async () => {
    const panels = Object.entries(dashboards).flatMap(([name, { rows }]) =>
      rows.flatMap((row) =>
        row.panels.flatMap(({ title, queries }) => queries.map((query) => ({ name, title, ...query }))),
      ),
    );
    const results = await resultsOf([
      ...panels.map(({ expression }) => expression),
      ...alerts.map(({ value }) => value),
      ...alerts.map(alertExpression),
    ]);
    const panelResults = results.slice(0, panels.length);
    const [values, fired] = [
      results.slice(panels.length, panels.length + alerts.length),
      results.slice(panels.length + alerts.length),
    ];
    expect(panels.filter((_, panelIndex) => !hasData(panelResults[panelIndex]!))).toEqual([]);
    expect(alerts.filter((_, alertIndex) => !hasData(values[alertIndex]!))).toEqual([]);
    expect(
      alerts.filter((_, alertIndex) => fired[alertIndex]!.error !== undefined || hasData(fired[alertIndex]!)),
    ).toEqual([]);
  });

  test('have alert rules that Prometheus accepts, unlike an invalid rule', async () => {
    const rules = readFileSync(join(packageRoot(), 'deploy/dashboards/alerts.yaml'), 'utf8');
    const check = async (text: string) =>
      (await evaluate({ scrapes: [], queries: [], atMs: 0, rules: text })).ruleErrors;
    expect(await check(rules)).toEqual([]);
    expect(await check(rules.replace(/expr: .*/, 'expr: "sum("'))).toHaveLength(1);
  });
});
