/**
 * Long outages of real Consul servers, in the nightly run: a wiped server and a revoked token are reported everywhere within a minute, and a
 * datacenter that lost its leader keeps its endpoints.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { stopControlPlanes } from '../harness/control-plane.ts';
import { eventually } from '../harness/eventually.ts';
import { sized } from '../harness/size-of-run.ts';
import { ConsulPlane, healthOf, hostOf } from './consul-plane.ts';
import { ConsulServer, stopConsulServers } from './consul-server.ts';

afterAll(stopConsulServers);
afterEach(stopControlPlanes);

const maxReportMs = 60_000;
const names = ['api', 'db', 'mail', 'web'];

/** Waits until `/ready`, the debug page, the metric and the log report the problem. */
async function waitForReport(
  plane: ConsulPlane,
  condition: 'held' | 'failing',
  reason: RegExp,
  line: string,
): Promise<void> {
  const startedAt = performance.now();
  await eventually('it is reported everywhere', async () => {
    const view = await plane.view();
    return (
      view.condition === condition &&
      reason.test(view.reason) &&
      reason.test((await plane.plane.get('/ready')).text) &&
      (await plane.metrics()).includes(
        `pilot_registry_condition{registry="Consul/local",condition="${condition}"} 1`,
      ) &&
      plane.plane.lines.some((logText) => logText.includes(line) && reason.test(logText))
    );
  });
  const tookMs = performance.now() - startedAt;
  console.info(`${condition} after ${Math.round(tookMs)} ms`);
  expect(tookMs).toBeLessThan(maxReportMs);
  expect([...(await plane.services()).keys()].toSorted()).toEqual(names.map(hostOf));
}

describe.skipIf(sized({ short: true, full: false }))('a real Consul server', () => {
  it('is reported everywhere within a minute after it was wiped, and no service is removed', async () => {
    const server = await ConsulServer.start();
    for (const service of names) await server.register({ service });
    const plane = new ConsulPlane(server);
    await plane.plane.ready();
    await server.kill();
    server.wipe();
    await server.start();
    await waitForReport(plane, 'held', /would remove all 4 services/, 'Consul response held back');
  }, 180_000);

  it('is reported everywhere within a minute after the token was revoked, even without changes', async () => {
    const managementToken = '11111111-2222-3333-4444-555555555555';
    const server = await ConsulServer.start({ managementToken });
    for (const service of names) await server.register({ service });
    const Rules = 'service_prefix "" { policy = "read" } node_prefix "" { policy = "read" }';
    const policy = (await server.request('PUT', 'acl/policy', { Name: 'read', Rules })) as { ID: string };
    const token = (await server.request('PUT', 'acl/token', { Policies: [{ ID: policy.ID }] })) as {
      SecretID: string;
      AccessorID: string;
    };
    const folder = mkdtempSync(join(tmpdir(), 'cp-consul-token-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const consulTokenFile = join(folder, 'token');
    writeFileSync(consulTokenFile, token.SecretID);
    const plane = new ConsulPlane(server, { consulTokenFile });
    await plane.plane.ready();
    await server.request('DELETE', `acl/token/${token.AccessorID}`);
    await waitForReport(plane, 'failing', /CONSUL_TOKEN_REJECTED/, 'Consul not responding');
  }, 180_000);

  it('serves the last known services while it has no leader, and later changes when it has one again', async () => {
    const servers = await ConsulServer.startSeveral(3);
    const leader = (await servers[0]!.request('GET', 'status/leader')) as string;
    for (const service of names) await servers[0]!.register({ service });
    const plane = new ConsulPlane(servers[0]!);
    await plane.plane.ready();
    await servers[1]!.kill();
    await servers[2]!.kill();
    await waitForReport(plane, 'failing', /No cluster leader|no complete response|500/, 'Consul not responding');
    await servers[1]!.start();
    await servers[2]!.start();
    await servers[0]!.register({ service: 'web', address: '127.0.0.7' });
    await eventually('changes arrive again', async () => (await healthOf(plane, 'web')).startsWith('127.0.0.7'));
    expect(leader).toMatch(/^127\.0\.0\.1:/);
    expect((await plane.plane.get('/ready')).text).toBe('');
  }, 240_000);
});
