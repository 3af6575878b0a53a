/** Istio's standard metrics in a mesh of pods with sidecars, strict mutual TLS and a stock Envoy. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { peerHeader } from '../../src/model/standard-metrics/peer-claim.ts';
import { connectionLabels, requestLabels } from '../../src/model/standard-metrics/standard-metrics.ts';
import { eventually } from '../harness/eventually.ts';
import { requireIptables } from '../harness/iptables.ts';
import { type Pod, PodMesh, podService } from '../harness/pod-mesh.ts';
import { isFull } from '../harness/size-of-run.ts';
import type { LoadReport } from '../load/report.ts';

const telemetry = `
apiVersion: telemetry.istio.io/v1
kind: Telemetry
metadata: { name: metrics, namespace: istio-system }
spec:
  metrics:
    - providers: [{ name: prometheus }]
`;

let mesh: PodMesh;
const telemetryFile = (): string => join(mesh.root, 'mesh', 'telemetry.yaml');

beforeAll(async () => {
  requireIptables();
  mesh = await PodMesh.create();
  writeFileSync(telemetryFile(), telemetry);
  await mesh.start();
});

afterAll(() => mesh?.stop());

type Sample = readonly [labels: Readonly<Record<string, string>>, value: number];

async function page(pod: Pod): Promise<string> {
  const { stdout } = await mesh.outside.run([
    ...['curl', '--silent', '--max-time', '10', `http://${pod.address}:15020/stats/prometheus`],
  ]);
  return stdout;
}

async function samples(pod: Pod, metric: string): Promise<Sample[]> {
  return (await page(pod)).split('\n').flatMap((line): Sample[] => {
    const [, name, labels, value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    if (name !== metric) return [];
    const pairs = [...(labels ?? '').matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, label, text]) => [label!, text!]);
    return [[Object.fromEntries(pairs), Number(value)]];
  });
}

const total = (foundSamples: readonly Sample[]): number => foundSamples.reduce((sum, [, value]) => sum + value, 0);

async function requests(pod: Pod, labels: Readonly<Record<string, string>> = {}): Promise<number> {
  const all = await samples(pod, 'istio_requests_total');
  return total(
    all.filter(([sampleLabels]) => Object.entries(labels).every(([label, value]) => sampleLabels[label] === value)),
  );
}

/** Sends requests until both versions have responded. */
async function sendRequests(times: number, ...headers: string[]): Promise<string> {
  const { client } = mesh.pods;
  const headerArgs = headers.flatMap((header) => ['--header', header]);
  const urls = Array.from({ length: times }, () => `http://${podService.host}/`);
  const { stdout, exitCode } = await client.side.run([
    'curl',
    '--silent',
    '--fail',
    '--max-time',
    '10',
    ...headerArgs,
    ...urls,
  ]);
  expect(exitCode).toBe(0);
  return stdout;
}

test("client and server count each request with all of Istio's labels", async () => {
  const { client, 'sample-v1': v1, 'sample-v2': v2 } = mesh.pods;
  const initial = await requests(client, { response_code: '200' });
  await sendRequests(20);
  await eventually(
    'the client has counted',
    async () => (await requests(client, { response_code: '200' })) >= initial + 20,
  );
  await eventually('the servers have counted as many', async () => {
    const countedRequests = await Promise.all(
      [v1, v2].map((pod) => requests(pod, { reporter: 'destination', response_code: '200' })),
    );
    return countedRequests[0]! + countedRequests[1]! >= initial + 20 && countedRequests.every((count) => count > 0);
  });
  const clientSamples = (await samples(client, 'istio_requests_total')).filter(
    ([one]) => one.destination_version === 'v1',
  );
  expect(clientSamples[0]![0]).toEqual({
    reporter: 'source',
    source_workload: 'client',
    source_canonical_service: 'client',
    source_canonical_revision: 'latest',
    source_workload_namespace: 'demo',
    source_principal: expect.stringContaining('/ns/demo/sa/'),
    source_app: 'client',
    source_version: 'unknown',
    source_cluster: expect.any(String),
    destination_workload: expect.any(String),
    destination_workload_namespace: 'demo',
    destination_principal: expect.stringContaining('/ns/demo/sa/'),
    destination_app: 'sample',
    destination_version: 'v1',
    destination_service: podService.host,
    destination_canonical_service: 'sample',
    destination_canonical_revision: 'v1',
    destination_service_name: expect.any(String),
    destination_service_namespace: 'demo',
    destination_cluster: expect.any(String),
    request_protocol: 'http',
    response_code: '200',
    grpc_response_status: '',
    response_flags: '-',
    connection_security_policy: 'unknown',
  });
  const serverSample = (await samples(v1, 'istio_requests_total')).find(([one]) => one.source_workload === 'client');
  expect(serverSample?.[0]).toMatchObject({
    reporter: 'destination',
    source_workload: 'client',
    source_canonical_service: 'client',
    source_workload_namespace: 'demo',
    source_principal: expect.stringContaining('/ns/demo/sa/'),
    destination_workload: 'sample-v1',
    destination_service: podService.host,
    destination_principal: expect.stringContaining('/ns/demo/sa/'),
    connection_security_policy: 'mutual_tls',
  });
  expect(Object.keys(serverSample![0]).sort()).toEqual([...connectionLabels, ...requestLabels].sort());
  for (const metric of ['istio_request_duration_milliseconds', 'istio_request_bytes', 'istio_response_bytes']) {
    expect(total(await samples(client, `${metric}_count`))).toBe(await requests(client));
    expect(total(await samples(client, `${metric}_sum`))).toBeGreaterThan(0);
  }
  expect(await samples(client, 'istio_build')).toEqual([[{ component: 'proxy', tag: expect.any(String) }, 1]]);
});

test('a header that the application forges changes no label, and no application receives the header', async () => {
  const { 'sample-v1': v1, 'sample-v2': v2 } = mesh.pods;
  const forged = '1;demo;default;forged;forged;v1;forged;v1;c';
  const text = await sendRequests(10, `${peerHeader}: ${forged}`);
  expect(text).not.toContain('forged');
  expect(text).not.toContain(peerHeader);
  await sendRequests(10);
  for (const pod of [v1, v2]) {
    const workloads = (await samples(pod, 'istio_requests_total')).map(([{ source_workload: name }]) => name);
    expect(new Set(workloads)).toEqual(new Set(['client']));
  }
});

test('counters continue across a hot restart of Envoy', async () => {
  const { client } = mesh.pods;
  await sendRequests(5);
  const initial = await requests(client);
  const epochs = async () =>
    total((await samples(client, 'istio_agent_envoy_epochs_total')).filter(([one]) => one.event === 'live'));
  const liveBefore = await epochs();
  process.kill(client.agent!.pid, 'SIGHUP');
  await eventually('another epoch is live', async () => (await epochs()) > liveBefore);
  expect(await requests(client)).toBeGreaterThanOrEqual(initial);
  await sendRequests(5);
  await eventually('the new Envoy reports', async () => (await requests(client)) >= initial + 5);
});

test('Telemetry objects change labels and disable metrics under load', async () => {
  const { client } = mesh.pods;
  writeFileSync(
    telemetryFile(),
    `${telemetry}      overrides:
        - match: { mode: CLIENT }
          tagOverrides:
            request_method: { value: request.method }
            destination_port: { value: string(destination.port) }
            mesh_name: { value: "'shop'" }
            response_flags: { operation: REMOVE }
        - match: { metric: REQUEST_SIZE, mode: CLIENT }
          disabled: true
`,
  );
  await eventually('labels are there', async () => {
    await sendRequests(2);
    return (await requests(client, { request_method: 'GET', mesh_name: 'shop' })) > 0;
  });
  const [changedSample] = (await samples(client, 'istio_requests_total')).filter(
    ([one]) => one.request_method === 'GET',
  );
  expect(changedSample![0]).not.toHaveProperty('response_flags');
  expect(changedSample![0].destination_port).toMatch(/^\d+$/);
  const sized = await samples(client, 'istio_request_bytes_count');
  expect(sized.filter(([one]) => one.request_method !== undefined)).toEqual([]);
  writeFileSync(telemetryFile(), `${telemetry}      overrides: [{ disabled: true }]\n`);
  await eventually('nothing is counted', async () => {
    const initial = await requests(client);
    await sendRequests(3);
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    return (await requests(client)) === initial;
  });
  writeFileSync(telemetryFile(), telemetry);
});

/** Number of entries that Envoy could not send. */
async function countDropped(pod: Pod): Promise<number> {
  return total(await samples(pod, 'envoy_access_logs_grpc_access_log_logs_dropped'));
}

test.runIf(isFull)(
  'requests continue while the agent does not read log entries, and each request is counted or counted as lost',
  async () => {
    const { client } = mesh.pods;
    await eventually('metrics are on', async () => {
      const initial = await requests(client);
      await sendRequests(2);
      await new Promise((resolve) => setTimeout(resolve, 2_000));
      return (await requests(client)) > initial;
    });
    const initial = { counted: await requests(client), lost: await countDropped(client) };
    const agent = client.agent!.pid;
    const load = await mesh.startLoad({ clients: [{ kind: 'ka', count: 8 }], maxDurationMs: 300_000 });
    let report: LoadReport;
    try {
      await eventually('requests are served', async () => (await load.report()).total > 100);
      process.kill(agent, 'SIGSTOP');
      const stoppedAt = (await load.report()).total;
      // An entry has about 700 bytes; together they exceed all buffers between Envoy and the agent.
      await eventually(
        'requests are served without the agent',
        async () => (await load.report()).total > stoppedAt + 20_000,
        {
          deadlineMs: 240_000,
        },
      );
      report = await load.stop();
    } finally {
      process.kill(agent, 'SIGCONT');
    }
    expect(report.failed).toBe(0);
    const countServed = (): Promise<number[]> => Promise.all([requests(client), countDropped(client)]);
    await eventually('all are accounted for', async () => {
      const [countedRequests = 0, lostCount = 0] = await countServed();
      return countedRequests - initial.counted + lostCount - initial.lost >= report.total;
    });
    const [countedRequests = 0, lostCount = 0] = await countServed();
    expect({
      lost: lostCount > initial.lost,
      sum: countedRequests - initial.counted + lostCount - initial.lost,
    }).toEqual({
      lost: true,
      sum: report.total,
    });
  },
);
