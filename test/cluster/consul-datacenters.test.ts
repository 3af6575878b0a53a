/** Two datacenters of Consul, and the same host name in Consul and in another registry. */
import { afterAll, afterEach, expect, it } from 'vitest';
import { stopControlPlanes } from '../harness/control-plane.ts';
import { eventually } from '../harness/eventually.ts';
import { ConsulPlane, healthOf, hostOf } from './consul-plane.ts';
import { ConsulServer, stopConsulServers } from './consul-server.ts';

afterAll(stopConsulServers);
afterEach(stopControlPlanes);

it('Consul instances of two datacenters are endpoints of one host, and an outage of a datacenter removes none', async () => {
  const first = await ConsulServer.start({ datacenter: 'dc1' });
  const second = await ConsulServer.start({ datacenter: 'dc2', otherDatacenter: first });
  await first.register({ service: 'web', address: '127.0.0.2' });
  await second.register({ service: 'web', address: '127.0.0.3' });
  await second.register({ service: 'far', address: '127.0.0.4' });
  await eventually(
    'both datacenters know each other',
    async () => ((await first.request('GET', 'catalog/datacenters')) as string[]).length === 2,
  );
  const plane = new ConsulPlane(first, { consulDatacenters: 'dc1,dc2' });
  await plane.plane.ready();
  const addresses = async (name: string): Promise<string[]> =>
    (await plane.endpoints(name)).map(({ address, locality }) => `${address} ${locality}`).toSorted();
  expect(await addresses('web')).toEqual(['127.0.0.2 dc1', '127.0.0.3 dc2']);
  expect(await addresses('far')).toEqual(['127.0.0.4 dc2']);
  await second.register({ service: 'web', address: '127.0.0.3', status: 'critical' });
  await eventually('a flip of health arrives', async () =>
    /127\.0\.0\.3 1 unhealthy/.test(await healthOf(plane, 'web')),
  );
  await second.kill();
  await eventually('the outage is reported', async () => (await plane.views())[1]!.condition === 'failing');
  expect((await plane.plane.get('/ready')).text).toMatch(/^registry Consul\/dc2: not responding/m);
  expect((await plane.views())[0]).toMatchObject({ registry: 'Consul/dc1', condition: 'synced' });
  expect(await addresses('far')).toEqual(['127.0.0.4 dc2']);
  await first.register({ service: 'web', address: '127.0.0.5' });
  await eventually('changes of the other datacenter arrive', async () =>
    (await addresses('web')).includes('127.0.0.5 dc1'),
  );
  await second.start();
  await second.register({ service: 'far', address: '127.0.0.6' });
  await eventually('changes arrive again', async () => (await addresses('far')).join() === '127.0.0.6 dc2');
});

it('a Consul datacenter that does not exist is reported by name, while the other one is read', async () => {
  const server = await ConsulServer.start();
  await server.register({ service: 'web' });
  const plane = new ConsulPlane(server, { consulDatacenters: 'dc1,dc9' });
  const conditions = async (): Promise<string> =>
    (await plane.views()).map(({ registry, condition }) => `${registry} ${condition}`).join();
  await eventually(
    'one datacenter is read, the other one reported',
    async () => (await conditions()) === 'Consul/dc1 synced,Consul/dc9 failing',
  );
  expect((await plane.views())[1]!.reason).toMatch(/No path to datacenter/);
});

const entry = (namespace: string, address: string): string => `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: web, namespace: ${namespace} }
spec:
  hosts: [${hostOf('web')}]
  resolution: STATIC
  ports: [{ number: 8080, name: http, protocol: HTTP }]
  endpoints: [{ address: ${address} }]
`;

it("a ServiceEntry with the host of a Consul service is reported, in the service's namespace and in another one", async () => {
  const server = await ConsulServer.start();
  await server.register({ service: 'web', address: '10.0.0.2', registrationFields: { Meta: { protocol: 'http' } } });
  const files = { 'default.yaml': entry('default', '10.0.0.8'), 'shop.yaml': entry('shop', '10.0.0.9') };
  const plane = new ConsulPlane(server, {}, {}, files);
  await plane.plane.ready();
  expect((await plane.endpoints('web')).map(({ address }) => address).toSorted()).toEqual(['10.0.0.2', '10.0.0.8']);
  const status = (await plane.plane.get('/debug/push_status')).json() as { pilot_config_warnings: object };
  const texts = Object.entries(status.pilot_config_warnings).map(
    ([location, content]) => `${location}: ${JSON.stringify(content)}`,
  );
  expect(texts.filter((text) => text.includes('HOST_CONFLICT')).toSorted()).toEqual([
    expect.stringMatching(/^ServiceEntry\/default\/web.*spec\.hosts\[0\].*reach endpoints of both/),
    expect.stringMatching(/^ServiceEntry\/shop\/web.*spec\.hosts\[0\].*clients of namespace shop do not reach/),
  ]);
});
