/** Standard metrics of an Envoy without chartpilot's agent, which Envoy counts itself (docs/metrics.md). */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../../harness/eventually.ts';
import { isFull } from '../../harness/size-of-run.ts';
import { FeatureMesh } from './harness/feature-mesh.ts';
import { object, serviceEntry } from './harness/objects.ts';

let mesh: FeatureMesh;

beforeAll(async () => {
  mesh = await FeatureMesh.start({
    proxies: { web: { labels: { app: 'web', version: 'v1' }, metadata: { WORKLOAD_NAME: 'web-1' } } },
    meshConfig: { defaultProviders: { metrics: ['prometheus'] } },
  });
});

afterAll(() => mesh?.stop());

interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

async function samples(metric: string): Promise<Sample[]> {
  const page = await mesh.envoy('web').admin('/stats/prometheus');
  return page.split('\n').flatMap((line): Sample[] => {
    const [, name, labels = '', value] = /^(\w+)\{(.*)\} (\S+)$/.exec(line) ?? [];
    if (name !== metric) return [];
    const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, label, text]) => [label!, text!]);
    return [{ labels: Object.fromEntries(pairs), value: Number(value) }];
  });
}

const telemetry = (overrides: object[]): string =>
  object('telemetry.istio.io/v1', 'Telemetry', 'shop', 'metrics', { metrics: [{ overrides }] });

test("Envoy counts requests with Istio's labels, also in histograms", async () => {
  const cart = await mesh.http('v1');
  const port = await mesh.port();
  await mesh.apply(serviceEntry('cart.shop.test', { port, backends: [cart] }));
  for (let i = 0; i < 3; i++) await mesh.request('web', { port, host: 'cart.shop.test', path: `/${i}` });
  const [sample] = await eventually('they are counted', async () => {
    const all = await samples('envoy_istio_requests_total');
    return all[0]?.value === 3 && all;
  });
  expect(sample!.labels).toMatchObject({
    reporter: 'source',
    source_workload: 'web-1',
    source_canonical_service: 'web',
    source_canonical_revision: 'v1',
    source_workload_namespace: 'shop',
    source_app: 'web',
    source_version: 'v1',
    source_principal: 'unknown',
    destination_workload: 'unknown',
    destination_service: 'cart.shop.test',
    destination_service_namespace: 'shop',
    request_protocol: 'http',
    response_code: '200',
    response_flags: '-',
    connection_security_policy: 'unknown',
  });
  await eventually('the histogram is flushed', async () => {
    const [duration] = await samples('envoy_istio_request_duration_milliseconds_count');
    return duration?.value === 3;
  });
});

test('Envoy counts the bytes of a TCP connection when it closes', async () => {
  const echo = await mesh.tcp('echo');
  const port = await mesh.port();
  await mesh.apply(serviceEntry('echo.shop.test', { port, protocol: 'TCP', backends: [echo] }));
  await mesh.connect('web', { port, send: 'hello\n', until: /hello/ });
  const labels = await eventually('the connection is counted', async () => {
    const [closedSample] = await samples('envoy_istio_tcp_connections_closed_total');
    return closedSample?.value === 1 && closedSample.labels;
  });
  expect(labels).toMatchObject({ reporter: 'source', destination_service: 'echo.shop.test', request_protocol: 'tcp' });
  expect((await samples('envoy_istio_tcp_received_bytes_total'))[0]?.value).toBe('hello\n'.length);
});

test('Telemetry objects change labels and disable metrics', async () => {
  const cart = await mesh.http('v1');
  const port = await mesh.port();
  const service = serviceEntry('cart.shop.test', { port, backends: [cart] });
  const tagOverrides = { verb: { value: 'request.method' }, response_flags: { operation: 'REMOVE' } };
  const changedMetrics = [{ match: { metric: 'REQUEST_COUNT' }, tagOverrides }];
  await mesh.apply(`${service}---\n${telemetry(changedMetrics)}`);
  await mesh.request('web', { port, host: 'cart.shop.test', path: '/' });
  const sample = await eventually('the label is there', async () =>
    (await samples('envoy_istio_requests_total')).find(({ labels }) => labels.verb === 'GET'),
  );
  expect(sample.labels).not.toHaveProperty('response_flags');
  await mesh.apply(`${service}---\n${telemetry([{ disabled: true }])}`);
  const samplesBefore = await samples('envoy_istio_requests_total');
  await mesh.request('web', { port, host: 'cart.shop.test', path: '/' });
  // Excludes draining listeners, which still have the logger.
  const { configs } = JSON.parse(await mesh.envoy('web').admin('/config_dump?resource=dynamic_listeners')) as {
    configs: { active_state?: object }[];
  };
  const active = configs.map(({ active_state: state }) => JSON.stringify(state));
  expect(active.length).toBeGreaterThan(0);
  expect(active.filter((state) => state?.includes('access_loggers.stats'))).toEqual([]);
  expect(await samples('envoy_istio_requests_total')).toEqual(samplesBefore);
});

test.runIf(isFull)('Envoy limits the number of label sets', async () => {
  const cart = await mesh.http('v1');
  const port = await mesh.port();
  const pathOverrides = [{ match: { metric: 'REQUEST_COUNT' }, tagOverrides: { path: { value: 'request.path' } } }];
  await mesh.apply(`${serviceEntry('cart.shop.test', { port, backends: [cart] })}---\n${telemetry(pathOverrides)}`);
  for (let i = 0; i < 2_100; i++) await mesh.request('web', { port, host: 'cart.shop.test', path: `/bounded/${i}` });
  const boundedSamples = (await samples('envoy_istio_requests_total')).filter(({ labels }) =>
    labels.path?.startsWith('/bounded/'),
  );
  expect(boundedSamples.length).toBeGreaterThan(1_500);
  expect(boundedSamples.length).toBeLessThanOrEqual(2_000);
});
