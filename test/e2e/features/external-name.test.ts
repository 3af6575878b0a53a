/** ExternalName services: configuration for the alias applies to requests that use the alias. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { FeatureMesh } from './harness/feature-mesh.ts';
import { serviceOf } from './harness/gateway-api-objects.ts';
import { object } from './harness/objects.ts';

let mesh: FeatureMesh;

beforeAll(async () => {
  mesh = await FeatureMesh.start({ proxies: { web: { labels: { app: 'web' } } } });
});

afterAll(() => mesh?.stop());

const externalService = (name: string, externalName: string, namespace = 'shop'): string =>
  object('v1', 'Service', namespace, name, { type: 'ExternalName', externalName });

const istio = (kind: string, name: string, spec: object): string =>
  object('networking.istio.io/v1', kind, 'shop', name, spec);

test('VirtualServices and DestinationRules of an ExternalName service apply only to its name', async () => {
  const [backend, port] = [await mesh.http('concrete'), await mesh.port()];
  const concrete = 'concrete.shop.svc.cluster.local';
  const front = 'front.stage.svc.cluster.local';
  await mesh.apply(
    [
      serviceOf(backend, { port }),
      externalService('front', concrete, 'stage'),
      externalService('door', front),
      istio('VirtualService', 'front', {
        hosts: [front],
        http: [{ headers: { request: { set: { 'x-name': 'front' } } }, route: [{ destination: { host: front } }] }],
      }),
      istio('DestinationRule', 'front', {
        host: front,
        trafficPolicy: { connectionPool: { http: { maxRequestsPerConnection: 1 } } },
      }),
      externalService('side', concrete),
      istio('DestinationRule', 'side', { host: 'side', trafficPolicy: { loadBalancer: { simple: 'RANDOM' } } }),
    ].join('\n---\n'),
  );
  const countSent = (host: string) => mesh.envoy('web').stat(`cluster.outbound|${port}||${host};.upstream_rq_total`);
  const headerFor = async (host: string) => (await mesh.request('web', { port, host })).seen.headers['x-name'];
  expect(await headerFor('concrete')).toBeUndefined();
  expect(await headerFor('front.stage')).toBe('front');
  expect(await headerFor('door')).toBe('front');
  expect(await headerFor('side.shop')).toBeUndefined();
  expect([await countSent(concrete), await countSent(front), await countSent('side.shop.svc.cluster.local')]).toEqual([
    1, 2, 1,
  ]);
});

test('requests are sent to the new target after an ExternalName service changes', async () => {
  const [one, two, port] = [await mesh.http('one'), await mesh.http('two'), await mesh.port()];
  const rule = istio('DestinationRule', 'moving', {
    host: 'moving',
    trafficPolicy: { loadBalancer: { simple: 'RANDOM' } },
  });
  const services = [serviceOf(one, { port }), serviceOf(two, { port }), rule].join('\n---\n');
  for (const name of ['one', 'two', 'one']) {
    await mesh.apply(`${services}\n---\n${externalService('moving', `${name}.shop.svc.cluster.local`)}`);
    expect((await mesh.request('web', { port, host: 'moving' })).seen.backend).toBe(name);
  }
});
