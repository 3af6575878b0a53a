/**
 * The registry of a real Consul: the effect of each change, and no effect of an outage, a lost catalog or a revoked token (docs/consul.md).
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { stopControlPlanes } from '../harness/control-plane.ts';
import { eventually } from '../harness/eventually.ts';
import { ConsulPlane, healthOf, hostOf } from './consul-plane.ts';
import { ConsulServer, type GivenInstance, stopConsulServers } from './consul-server.ts';

function mkTemporary(): string {
  const folder = mkdtempSync(join(tmpdir(), 'cp-consul-token-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

afterAll(stopConsulServers);
afterEach(stopControlPlanes);

describe('a Consul catalog', () => {
  let server: ConsulServer;
  beforeAll(async () => {
    server = await ConsulServer.start();
  });

  it('is served as services, and each change of an instance reaches its endpoints', async () => {
    // With more services than nodes, the watch is per node.
    for (let other = 0; other < 6; other++) await server.register({ node: 'n1', service: `other-${other}` });
    await server.register({
      service: 'web',
      registrationFields: { Meta: { protocol: 'http' }, Weights: { Passing: 10, Warning: 2 } },
    });
    const plane = new ConsulPlane(server);
    await plane.plane.ready();
    expect((await plane.services()).get(hostOf('web'))).toMatchObject({
      ...{ namespace: 'default', registry: 'Consul', resolution: 'ClientSideLB' },
      ports: [{ name: 'http', number: 8080, protocol: 'HTTP' }],
    });
    expect(await healthOf(plane, 'web')).toBe('127.0.0.1 10 healthy');
    const becomes = async (change: Partial<GivenInstance>, expected: string): Promise<void> => {
      plane.takePushed();
      const extraFields = {
        Meta: { protocol: 'http' },
        Weights: { Passing: 10, Warning: 2 },
        ...change.registrationFields,
      };
      await server.register({ service: 'web', ...change, registrationFields: extraFields });
      await eventually(expected, async () => (await healthOf(plane, 'web')) === expected);
    };
    await becomes({ status: 'warning' }, '127.0.0.1 2 healthy');
    expect(plane.takePushed()).toEqual(['Endpoints/default/web.service.consul']);
    await becomes({ status: 'critical' }, '127.0.0.1 10 unhealthy');
    await becomes({ status: 'passing' }, '127.0.0.1 10 healthy');
    await becomes({ nodeAddress: '127.0.0.9' }, '127.0.0.9 10 healthy');
    await becomes({ nodeAddress: '127.0.0.9', address: '127.0.0.3' }, '127.0.0.3 10 healthy');
    await becomes(
      { node: 'n2', id: 'web-2', address: '127.0.0.4', status: 'critical' },
      '127.0.0.3 10 healthy, 127.0.0.4 10 unhealthy',
    );
    await server.register({ service: 'api' });
    await eventually('api is served', async () => (await plane.services()).has(hostOf('api')));
    await server.deregister('n2', 'web-2');
    await eventually('the instance is gone', async () => (await healthOf(plane, 'web')) === '127.0.0.3 10 healthy');
    await server.deregister('n1', 'web-1');
    await eventually('web is gone', async () => !(await plane.services()).has(hostOf('web')));
    expect((await plane.services()).has(hostOf('api'))).toBe(true);
    expect(await plane.view()).toMatchObject({ condition: 'synced', strategy: 'nodes' });
  });
});

it('a wiped Consul server removes no service, and is reported until an operator confirms the loss', async () => {
  const server = await ConsulServer.start();
  for (const name of ['web', 'api', 'db', 'mail']) await server.register({ service: name });
  const plane = new ConsulPlane(server);
  await plane.plane.ready();
  const names = [...(await plane.services()).keys()].toSorted();
  expect(names).toEqual(['api', 'db', 'mail', 'web'].map(hostOf));
  await server.kill();
  await eventually('the outage is reported', async () => (await plane.view()).condition === 'failing');
  expect((await plane.plane.get('/ready')).text).toMatch(
    /registry Consul\/local: not responding, serving the last known services: /,
  );
  await server.start();
  await eventually('the outage is over', async () => (await plane.view()).condition === 'synced');
  await server.register({ service: 'web', address: '127.0.0.7' });
  await eventually('changes arrive again', async () => (await healthOf(plane, 'web')).startsWith('127.0.0.7'));
  await server.kill();
  server.wipe();
  await server.start();
  await eventually('the response is held back', async () => (await plane.view()).condition === 'held');
  expect((await plane.plane.get('/ready')).text).toContain('would remove all 4 services');
  expect(await plane.metrics()).toContain('pilot_registry_condition{registry="Consul/local",condition="held"} 1');
  expect([...(await plane.services()).keys()].toSorted()).toEqual(names);
  expect(plane.plane.lines.join('\n')).toContain('Consul response held back');
  await server.register({ service: 'new' });
  const path = '/debug/consulz?accept=Consul/local';
  expect((await plane.plane.get(path)).status).toBe(405);
  expect((await plane.plane.get(path, { method: 'POST' })).status).toBe(202);
  await eventually(
    'what Consul has is served',
    async () => [...(await plane.services()).keys()].join() === hostOf('new'),
  );
  expect((await plane.plane.get('/ready')).text).toBe('');
  expect((await plane.plane.get(path, { method: 'POST' })).status).toBe(409);
});

it('a Consul token that is deleted or loses permissions removes no service, and a new token in the file applies immediately', async () => {
  const managementToken = '11111111-2222-3333-4444-555555555555';
  const server = await ConsulServer.start({ managementToken });
  for (const name of ['web', 'api', 'db', 'mail']) await server.register({ service: name });
  const rules = 'service_prefix "" { policy = "read" } node_prefix "" { policy = "read" }';
  const policy = (await server.request('PUT', 'acl/policy', { Name: 'read', Rules: rules })) as { ID: string };
  const token = async (): Promise<{ SecretID: string; AccessorID: string }> =>
    (await server.request('PUT', 'acl/token', { Policies: [{ ID: policy.ID }] })) as never;
  const first = await token();
  const consulTokenFile = join(mkTemporary(), 'token');
  writeFileSync(consulTokenFile, `${first.SecretID}\n`);
  const plane = new ConsulPlane(server, { consulTokenFile });
  await plane.plane.ready();
  const names = [...(await plane.services()).keys()].toSorted();
  expect(names).toHaveLength(4);
  // The token is deleted while blocking queries are pending: each returns 403.
  await server.request('DELETE', `acl/token/${first.AccessorID}`);
  await eventually('it is reported', async () => (await plane.view()).condition === 'failing');
  expect((await plane.view()).reason).toContain('CONSUL_TOKEN_REJECTED');
  const secondToken = await token();
  writeFileSync(consulTokenFile, secondToken.SecretID);
  await eventually('the new token is used', async () => (await plane.view()).condition === 'synced');
  // The policy loses its permissions: responses are empty, with status 200.
  await server.request('PUT', `acl/policy/${policy.ID}`, { ID: policy.ID, Name: 'read', Rules: '' });
  await server.register({ service: 'late' });
  await eventually('the empty response is held back', async () => (await plane.view()).condition === 'held');
  expect((await plane.view()).reason).toContain('ACLs hide results from this token');
  expect([...(await plane.services()).keys()].toSorted()).toEqual(names);
  await server.request('PUT', `acl/policy/${policy.ID}`, { ID: policy.ID, Name: 'read', Rules: rules });
  await eventually('the catalog is served again', async () => (await plane.services()).has(hostOf('late')));
  expect(JSON.stringify(plane.plane.records)).not.toContain(secondToken.SecretID);
  expect(plane.plane.lines.join('\n')).not.toContain(secondToken.SecretID);
});

it('a Consul agent that allows few connections is watched with fewer connections', async () => {
  const server = await ConsulServer.start({ connectionsPerClient: 20 });
  for (let node = 0; node < 40; node++) {
    await server.register({ node: `n${node}`, service: `s${node}`, address: `127.0.1.${node + 1}` });
  }
  const plane = new ConsulPlane(server);
  await eventually('it is synced', async () => (await plane.view()).condition === 'synced');
  await eventually('it is watched coarsely', async () => (await plane.view()).strategy === 'coarse');
  await server.register({ node: 'n3', service: 's3', address: '127.0.1.200' });
  await eventually('changes arrive', async () => (await healthOf(plane, 's3')) === '127.0.1.200 1 healthy');
  expect((await plane.services()).size).toBe(40);
});
