import { expect, test } from 'vitest';
import { peerClaimText } from '../../model/standard-metrics/peer-claim.ts';
import { connectionLabels, requestLabels } from '../../model/standard-metrics/standard-metrics.ts';
import { logNameOf, type Reporter, type StreamRules } from '../../model/standard-metrics/stream-rules.ts';
import { rulesOf } from './known-rules.ts';
import { type AccessLogEntry, readLogMessage } from './log-entries.ts';
import { MeshMetrics, type MeshMetricsOptions } from './mesh-metrics.ts';
import type { Overflow } from './metric-table.ts';

const localWorkload = {
  workload: 'reviews-v1',
  namespace: 'shop',
  service: 'reviews',
  revision: 'v1',
  app: 'reviews',
  version: 'v1',
  cluster: 'c1',
};
const client = {
  ...localWorkload,
  workload: 'web-v2',
  service: 'web',
  app: 'web',
  revision: 'v2',
  version: 'v2',
  account: 'web',
};
const clientId = 'spiffe://cluster.local/ns/shop/sa/web';

class MetricsFixture {
  nowMs = 0;
  readonly foldings: Overflow[] = [];
  readonly metrics: MeshMetrics;

  constructor(options: Partial<MeshMetricsOptions> = {}) {
    this.metrics = new MeshMetrics({
      localWorkload,
      version: '1.0',
      now: () => this.nowMs,
      startedAtMs: 1_000,
      onFolding: (folding) => this.foldings.push(folding),
      ...options,
    });
  }

  take(reporter: Reporter, entry: Partial<AccessLogEntry>, metrics: StreamRules['metrics'] = {}): void {
    const [emptyEntry] = readLogMessage(Buffer.from([18, 2, 10, 0])).entries;
    const protocol = entry.protocol ?? 'http';
    this.metrics.recordEntry(
      { ...emptyEntry!, code: 200, startMs: 2_000, ...entry, protocol },
      rulesOf(logNameOf({ reporter, metrics }))!,
    );
  }

  get text(): string {
    return [...this.metrics.text()].join('');
  }

  /** Samples of a metric: labels and value. */
  samples(name: string): [Record<string, string>, number][] {
    return this.text.split('\n').flatMap((line): [Record<string, string>, number][] => {
      const [, metric, labels, value] = /^(\w+)\{(.*)\} (\S+)$/.exec(line) ?? [];
      if (metric !== name) return [];
      const pairs = [...labels!.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, label, text]) => [label!, text!]);
      return [[Object.fromEntries(pairs), Number(value)]];
    });
  }
}

const fromClient: Partial<AccessLogEntry> = {
  peerUri: clientId,
  localUri: 'spiffe://cluster.local/ns/shop/sa/reviews',
  claim: peerClaimText(client),
  cluster: 'inbound|8080||',
  services: '[{"host":"reviews.shop.svc.cluster.local","name":"reviews","namespace":"shop"}]',
  durationMs: 7,
  received: 120,
  sent: 1_500,
};

test("labels an inbound request with all of Istio's labels", () => {
  const testMetrics = new MetricsFixture();
  testMetrics.take('destination', fromClient);
  testMetrics.take('destination', fromClient);
  const [[labels, value]] = testMetrics.samples('istio_requests_total') as [[Record<string, string>, number]];
  expect(value).toBe(2);
  expect(labels).toEqual({
    reporter: 'destination',
    source_workload: 'web-v2',
    source_workload_namespace: 'shop',
    source_canonical_service: 'web',
    source_canonical_revision: 'v2',
    source_app: 'web',
    source_version: 'v2',
    source_cluster: 'c1',
    source_principal: clientId,
    destination_workload: 'reviews-v1',
    destination_workload_namespace: 'shop',
    destination_canonical_service: 'reviews',
    destination_canonical_revision: 'v1',
    destination_app: 'reviews',
    destination_version: 'v1',
    destination_cluster: 'c1',
    destination_principal: 'spiffe://cluster.local/ns/shop/sa/reviews',
    destination_service: 'reviews.shop.svc.cluster.local',
    destination_service_name: 'reviews',
    destination_service_namespace: 'shop',
    request_protocol: 'http',
    response_code: '200',
    grpc_response_status: '',
    response_flags: '-',
    connection_security_policy: 'mutual_tls',
  });
  expect(Object.keys(labels).sort()).toEqual([...connectionLabels, ...requestLabels].sort());
});

test("exposes histograms with Istio's buckets, sum and count", () => {
  const testMetrics = new MetricsFixture();
  for (const durationMs of [0.2, 7, 30_000_000]) testMetrics.take('destination', { ...fromClient, durationMs });
  const buckets = testMetrics.samples('istio_request_duration_milliseconds_bucket');
  expect(buckets.map(([{ le }, value]) => [le, value])).toEqual([
    ...[
      ['0.5', 1],
      ['1', 1],
      ['5', 1],
      ['10', 2],
      ['25', 2],
      ['50', 2],
      ['100', 2],
      ['250', 2],
      ['500', 2],
      ['1000', 2],
    ],
    ...[
      ['2500', 2],
      ['5000', 2],
      ['10000', 2],
      ['30000', 2],
      ['60000', 2],
      ['300000', 2],
      ['600000', 2],
      ['1800000', 2],
    ],
    ...[
      ['3600000', 2],
      ['+Inf', 3],
    ],
  ]);
  expect(testMetrics.samples('istio_request_duration_milliseconds_sum')[0]![1]).toBeCloseTo(30_000_007.2);
  expect(testMetrics.samples('istio_request_duration_milliseconds_count')[0]![1]).toBe(3);
  expect(testMetrics.samples('istio_response_bytes_sum')[0]![1]).toBe(4_500);
  expect(testMetrics.samples('istio_request_bytes_sum')[0]![1]).toBe(360);
});

test('takes the labels of an outbound request from its endpoint, or from the mesh if it has none', () => {
  const testMetrics = new MetricsFixture();
  const services = '[{"host":"web.shop.svc.cluster.local","name":"web","namespace":"shop"}]';
  testMetrics.take('source', {
    workload: 'web-v2;shop;web;v2;c1',
    services,
    upstreamPeer: clientId,
    upstreamLocal: 'spiffe://own',
  });
  testMetrics.take('source', { route: 'block_all', code: 502, flags: 'NR' });
  testMetrics.take('source', { route: 'allow_any', cluster: 'PassthroughCluster' });
  const labels = testMetrics.samples('istio_requests_total').map(([one]) => one);
  expect(labels).toMatchObject([
    {
      reporter: 'source',
      source_workload: 'reviews-v1',
      source_principal: 'spiffe://own',
      destination_workload: 'web-v2',
      destination_app: 'web',
      destination_principal: clientId,
      destination_service: 'web.shop.svc.cluster.local',
      connection_security_policy: 'unknown',
    },
    { destination_service_name: 'BlackHoleCluster', destination_workload: 'unknown', response_flags: 'NR' },
    { destination_service_name: 'PassthroughCluster', destination_service: 'unknown' },
  ]);
});

test('adds the gRPC status label only to gRPC requests, even if other requests have a status header', () => {
  const testMetrics = new MetricsFixture();
  testMetrics.take('destination', { ...fromClient, contentType: 'application/grpc', grpcStatus: '14' });
  testMetrics.take('destination', { ...fromClient, contentType: 'application/grpc', grpcStatus: 'x"} 1' });
  testMetrics.take('destination', { ...fromClient, contentType: 'text/html', grpcStatus: '14' });
  const labelPairs = testMetrics
    .samples('istio_requests_total')
    .map(([one]) => [one.request_protocol, one.grpc_response_status]);
  expect(labelPairs).toEqual([
    ['grpc', '14'],
    ['grpc', ''],
    ['http', ''],
  ]);
});

test.each([
  [
    'without a certificate',
    { peerUri: '' },
    { source_workload_namespace: 'unknown', connection_security_policy: 'none' },
  ],
  [
    'of another service account',
    { peerUri: 'spiffe://cluster.local/ns/shop/sa/other' },
    { source_workload_namespace: 'shop' },
  ],
  ['of another namespace', { peerUri: 'spiffe://cluster.local/ns/evil/sa/web' }, { source_workload_namespace: 'evil' }],
  ['that is malformed', { claim: `${fromClient.claim};more` }, { source_workload_namespace: 'shop' }],
  [
    'with invalid characters',
    { claim: fromClient.claim!.replace('web-v2', 'we"b') },
    { source_workload_namespace: 'shop' },
  ],
  ['above the length limit', { claim: `1;shop;web;${'x'.repeat(2_000)}` }, { source_workload_namespace: 'shop' }],
])('ignores the claimed labels of a peer %s', (_, entry, expected) => {
  const testMetrics = new MetricsFixture();
  testMetrics.take('destination', { ...fromClient, ...entry });
  expect(testMetrics.samples('istio_requests_total')[0]![0]).toMatchObject({
    source_workload: 'unknown',
    source_canonical_service: 'unknown',
    source_cluster: 'unknown',
    ...expected,
  });
});

test('accepts 32 workload claims of a peer that claims thousands, and all claims of other peers', () => {
  const testMetrics = new MetricsFixture();
  for (let index = 0; index < 5_000; index++) {
    testMetrics.take('destination', { ...fromClient, claim: peerClaimText({ ...client, workload: `fake-${index}` }) });
  }
  const other = { ...client, namespace: 'bank', account: 'teller', workload: 'teller' };
  testMetrics.take('destination', {
    ...fromClient,
    peerUri: 'spiffe://cluster.local/ns/bank/sa/teller',
    claim: peerClaimText(other),
  });
  const samples = testMetrics.samples('istio_requests_total');
  expect(samples).toHaveLength(34);
  expect(samples.filter(([{ source_workload: name }]) => name === 'unknown').map(([, value]) => value)).toEqual([
    4_968,
  ]);
  expect(samples.at(-1)![0]).toMatchObject({ source_workload: 'teller', source_workload_namespace: 'bank' });
  expect(testMetrics.samples('istio_agent_peer_claims_total')).toContainEqual([{ outcome: 'excess' }, 4_968]);
});

test('combines label sets beyond the limit in one series, and reports this', () => {
  const testMetrics = new MetricsFixture({ limits: { maxLabelSets: 3 } });
  for (let code = 500; code < 510; code++) testMetrics.take('destination', { ...fromClient, code });
  const samples = testMetrics.samples('istio_requests_total');
  expect(samples.map(([{ response_code: code, destination_workload: to }, value]) => [code, to, value])).toEqual([
    ['500', 'reviews-v1', 1],
    ['501', 'reviews-v1', 1],
    ['502', 'reviews-v1', 1],
    ['5xx', 'unknown', 7],
  ]);
  expect(testMetrics.foldings[0]).toEqual({ metric: 'istio_requests_total', reason: 'label sets', limit: 3 });
  expect(testMetrics.samples('istio_agent_metric_folded_total')).toContainEqual([
    { metric: 'istio_requests_total' },
    7,
  ]);
});

test('limits the size of a metrics page', () => {
  const maxPageBytes = 300_000;
  const testMetrics = new MetricsFixture({ limits: { maxPageBytes } });
  for (let code = 100; code < 600; code++) testMetrics.take('destination', { ...fromClient, code });
  expect(testMetrics.foldings.some(({ reason }) => reason === 'page size')).toBe(true);
  // The limit excludes overflow series and the agent's own metrics, a few dozen lines.
  expect(Buffer.byteLength(testMetrics.text)).toBeLessThan(maxPageBytes * 2);
  const total = testMetrics.samples('istio_requests_total').reduce((sum, [, value]) => sum + value, 0);
  expect(total).toBe(500);
});

test('removes unused label sets and keeps the counts of the remaining ones', () => {
  const testMetrics = new MetricsFixture({ limits: { maxLabelSets: 2, idleMs: 60_000 } });
  testMetrics.take('destination', { ...fromClient, code: 200 });
  testMetrics.take('destination', { ...fromClient, code: 404 });
  testMetrics.nowMs = 50_000;
  testMetrics.take('destination', { ...fromClient, code: 200 });
  testMetrics.nowMs = 70_000;
  testMetrics.take('destination', { ...fromClient, code: 500 });
  const codes = testMetrics.samples('istio_requests_total').map(([{ response_code: code }, value]) => [code, value]);
  expect(codes).toEqual([
    ['200', 2],
    ['500', 1],
  ]);
  expect(testMetrics.text).toContain('istio_agent_metric_label_sets_evicted_total 4\n');
});

test('counts the bytes of an open TCP connection once', () => {
  const testMetrics = new MetricsFixture();
  const tcp = { ...fromClient, protocol: 'tcp', streamId: 'c' } as const;
  const values = () =>
    ['opened_total', 'closed_total']
      .map((kind) => testMetrics.samples(`istio_tcp_connections_${kind}`)[0]![1])
      .concat(['sent', 'received'].map((kind) => testMetrics.samples(`istio_tcp_${kind}_bytes_total`)[0]![1]));
  testMetrics.take('destination', { ...tcp, type: 1, sent: 0, received: 0 });
  expect(values()).toEqual([1, 0, 0, 0]);
  testMetrics.take('destination', { ...tcp, type: 2, sent: 100, received: 10 });
  testMetrics.take('destination', { ...tcp, type: 2, sent: 100, received: 10 });
  testMetrics.take('destination', { ...tcp, type: 2, sent: 150, received: 20 });
  expect(values()).toEqual([1, 0, 150, 20]);
  testMetrics.take('destination', { ...tcp, type: 3, sent: 160, received: 20 });
  expect(values()).toEqual([1, 1, 160, 20]);
  testMetrics.take('destination', { ...tcp, streamId: 'short', type: 3, sent: 5, received: 5 });
  expect(values()).toEqual([2, 2, 165, 25]);
});

test('does not count bytes that a connection transferred before the agent started', () => {
  const testMetrics = new MetricsFixture();
  const oldConnection = { ...fromClient, protocol: 'tcp', streamId: 'old', startMs: 500 } as const;
  testMetrics.take('destination', { ...oldConnection, type: 2, sent: 1_000, received: 1_000 });
  testMetrics.take('destination', { ...oldConnection, type: 3, sent: 1_100, received: 1_000 });
  expect(testMetrics.samples('istio_tcp_sent_bytes_total')[0]![1]).toBe(100);
  expect(testMetrics.samples('istio_tcp_connections_opened_total')[0]![1]).toBe(0);
});

test('counts connections beyond the limit when they end', () => {
  const testMetrics = new MetricsFixture({ maxConnections: 1 });
  const tcp = { ...fromClient, protocol: 'tcp' } as const;
  testMetrics.take('destination', { ...tcp, streamId: 'a', type: 1, sent: 0, received: 0 });
  testMetrics.take('destination', { ...tcp, streamId: 'b', type: 2, sent: 50, received: 0 });
  testMetrics.take('destination', { ...tcp, streamId: 'b', type: 3, sent: 80, received: 0 });
  expect(testMetrics.samples('istio_tcp_sent_bytes_total')[0]![1]).toBe(80);
  expect(testMetrics.samples('istio_tcp_connections_opened_total')[0]![1]).toBe(2);
});

test('applies Telemetry rules that disable metrics or remove, add or replace labels', () => {
  const testMetrics = new MetricsFixture();
  const entry = { ...fromClient, values: ['GET', ''] };
  testMetrics.take('destination', entry, {
    REQUEST_COUNT: {
      removed: ['response_flags'],
      set: {
        request_method: { tag: 0 },
        reporter: { text: 'x"\n' },
        absent: { tag: 1 },
        le: { text: '1' },
        'a-b': { text: 'c' },
      },
    },
    REQUEST_SIZE: { disabled: true },
  });
  const [[labels]] = testMetrics.samples('istio_requests_total') as [[Record<string, string>, number]];
  expect(labels).toMatchObject({
    request_method: 'GET',
    reporter: 'x\\"\\n',
    absent: 'unknown',
    tag_le: '1',
    a_b: 'c',
  });
  expect(labels).not.toHaveProperty('response_flags');
  expect(testMetrics.samples('istio_request_bytes_count')).toEqual([]);
  expect(testMetrics.samples('istio_response_bytes_count')[0]![0]).toHaveProperty('response_flags');
});

test('ignores log streams with other names', () => {
  for (const name of [
    'http_envoy_accesslog',
    'istio-metrics/x',
    'istio-metrics/source/{',
    `istio-metrics/source/${'{'.repeat(40_000)}`,
  ]) {
    expect(rulesOf(name)).toBeUndefined();
  }
});
