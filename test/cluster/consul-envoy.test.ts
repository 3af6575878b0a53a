/** A real Envoy with endpoints from a real Consul; no request fails while Consul restarts. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { afterAll, expect, it, onTestFinished } from 'vitest';
import { FeatureMesh } from '../e2e/features/harness/feature-mesh.ts';
import { destinationRule, virtualService } from '../e2e/features/harness/objects.ts';
import { eventually } from '../harness/eventually.ts';
import { ConsulServer, stopConsulServers } from './consul-server.ts';

const host = 'web.service.consul';

afterAll(stopConsulServers);

/** Instances share their Consul service's port, so each has a separate address. */
async function backend(name: string, address: string, port: number): Promise<void> {
  const server = createServer((_, response) => void response.end(name));
  server.listen(port, address);
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
}

it('Envoy applies weights and health from Consul, and fails no request during an outage of Consul', async () => {
  const server = await ConsulServer.start();
  const mesh = await FeatureMesh.start({
    proxies: { web: { labels: { app: 'web' } } },
    args: ['--registries', 'Consul', '--consulServerURL', server.url],
    explains: false,
  });
  onTestFinished(() => mesh.stop());
  const port = await mesh.port();
  await backend('v1', '127.0.0.2', port);
  await backend('v2', '127.0.0.3', port);
  const register = (version: string, address: string, status: 'passing' | 'critical' = 'passing') =>
    server.register({
      ...{ service: 'web', id: `web-${version}`, address, port, status },
      registrationFields: { Tags: [`version|${version}`], Meta: { protocol: 'http' } },
    });
  await register('v1', '127.0.0.2');
  await register('v2', '127.0.0.3');
  const requestBackend = async (): Promise<string> => {
    const { status, body } = await mesh.request('web', { port, host });
    return status === 200 ? body : String(status);
  };
  await eventually('both versions respond', async () => {
    const seenBackends = new Set([
      await requestBackend(),
      await requestBackend(),
      await requestBackend(),
      await requestBackend(),
    ]);
    return seenBackends.has('v1') && seenBackends.has('v2');
  });
  const to = (subset: string, weight: number): object => ({ destination: { host, subset }, weight });
  await mesh.apply(`
${destinationRule(host, { subsets: ['v1', 'v2'].map((version) => ({ name: version, labels: { version } })) })}
---
${virtualService(host, { http: [{ route: [to('v1', 0), to('v2', 100)] }] })}`);
  for (let at = 0; at < 10; at++) expect(await requestBackend()).toBe('v2');
  await mesh.apply('');
  const counts = new Map<string, number>();
  let isOver = false;
  const load = (async () => {
    while (!isOver) {
      const backend = await requestBackend();
      counts.set(backend, (counts.get(backend) ?? 0) + 1);
    }
  })();
  await server.kill();
  await server.start();
  await register('v1', '127.0.0.2', 'critical');
  await eventually('the critical instance gets no requests', async () => {
    const versions = [
      await requestBackend(),
      await requestBackend(),
      await requestBackend(),
      await requestBackend(),
      await requestBackend(),
      await requestBackend(),
    ];
    return versions.every((backend) => backend === 'v2');
  });
  isOver = true;
  await load;
  expect([...counts.keys()].toSorted()).toEqual(['v1', 'v2']);
});
