/**
 * pilot-discovery as a program on a cluster, and a real Envoy: what is written by API is in force soon. A server of the file's own, which is
 * killed while requests flow.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { HttpBackend } from '../e2e/features/harness/backends.ts';
import { FeatureMesh } from '../e2e/features/harness/feature-mesh.ts';
import { eventually } from '../harness/eventually.ts';
import { sized } from '../harness/size-of-run.ts';
import { givenOwnServer } from './given-cluster.ts';
import { defineKinds, of, writeKubeconfig } from './mesh-objects.ts';

const own = givenOwnServer();
const { cluster } = own;
const folder = mkdtempSync(join(tmpdir(), 'cp-kubeconfig-'));
const rounds = sized({ quick: 3, short: 3, full: 20 });
/** As it is promised; with ten other things beside it, it takes what it takes. */
const promisedMs = sized({ quick: 2_000, short: 2_000, full: 300 });
let mesh: FeatureMesh;
let port: number;
const backends = new Map<string, HttpBackend>();

beforeAll(async () => {
  await defineKinds(cluster);
  const kubeconfig = join(folder, 'config');
  writeKubeconfig(kubeconfig, cluster);
  mesh = await FeatureMesh.start({
    proxies: { client: { namespace: cluster.namespace } },
    args: ['--registries', 'Kubernetes', '--kubeconfig', kubeconfig],
    env: { PILOT_DEBOUNCE_AFTER: '100ms' },
    explains: false,
  });
  port = await mesh.port();
  // Kubernetes takes no endpoint at a loopback address.
  const address = Object.values(networkInterfaces())
    .flat()
    .find((one) => one?.family === 'IPv4' && !one.internal)?.address;
  for (const name of ['one', 'other'])
    backends.set(name, await mesh.http(name, address === undefined ? {} : { address }));
  await cluster.create(of.services, { metadata: { name: 'web' }, spec: { ports: [{ name: 'http', port }] } });
  for (const name of backends.keys()) {
    await cluster.create(of.services, { metadata: { name }, spec: { ports: [{ name: 'http', port }] } });
    await slice(name, name, true);
    await slice('web', name, name === 'one');
  }
}, 300_000);

afterAll(async () => {
  await mesh?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** A part of the service's endpoints: one backend. */
async function slice(service: string, backend: string, ready: boolean): Promise<void> {
  const { address, port: number } = backends.get(backend)!;
  await cluster.apply(of.slices, {
    metadata: { name: `${service}-${backend}`, labels: { 'kubernetes.io/service-name': service } },
    ...{ addressType: 'IPv4', ports: [{ name: 'http', port: number }] },
    endpoints: [{ addresses: [address], conditions: { ready } }],
  });
}

const hostOf = (name: string): string => `${name}.${cluster.namespace}.svc.cluster.local`;

async function answers(): Promise<string> {
  return (await mesh.request('client', { port, host: hostOf('web') })).seen?.backend ?? 'nobody';
}

/** @returns milliseconds from before the write until a request is answered by this backend */
async function untilAnswers(backend: string, write: () => Promise<unknown>): Promise<number> {
  const from = performance.now();
  await write();
  await eventually(`${backend} answers`, async () => (await answers().catch(() => '')) === backend, { everyMs: 5 });
  return performance.now() - from;
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;

async function measured(what: string, write: (backend: string) => Promise<unknown>): Promise<void> {
  const took: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const backend = round % 2 === 0 ? 'other' : 'one';
    took.push(await untilAnswers(backend, () => write(backend)));
  }
  console.log(`${what}: in force after ${took.map(Math.round).join(', ')} ms`);
  expect(median(took)).toBeLessThan(promisedMs);
}

it('a changed VirtualService is in force soon after it was written', async () => {
  await untilAnswers('one', async () => {});
  await measured('a VirtualService', (backend) =>
    cluster.apply(of.virtualServices, {
      metadata: { name: 'web' },
      spec: { hosts: [hostOf('web')], http: [{ route: [{ destination: { host: hostOf(backend) } }] }] },
    }),
  );
  await cluster.delete(of.virtualServices, 'web');
  await untilAnswers('one', async () => {});
});

it('the readiness of an endpoint is in force soon after it was written', async () => {
  await measured('readiness', async (backend) => {
    await slice('web', backend, true);
    await slice('web', backend === 'one' ? 'other' : 'one', false);
  });
});

it('a server that is killed costs no request; what happened is in force soon after it is back', async () => {
  await slice('web', 'one', true);
  await untilAnswers('one', () => slice('web', 'other', false));
  await own.server.kill();
  for (let request = 0; request < 50; request++) expect(await answers()).toBe('one');
  await own.server.start();
  const took = await untilAnswers('other', async () => {
    await slice('web', 'other', true);
    await slice('web', 'one', false);
  });
  console.log(`after the outage: in force after ${Math.round(took)} ms`);
});
