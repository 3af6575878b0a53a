/**
 * pilot-discovery as a program on a cluster, and a real Envoy: changes through the API apply soon. Uses a separate server, which is killed under
 * load.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { HttpBackend } from '../e2e/features/harness/backends.ts';
import { FeatureMesh } from '../e2e/features/harness/feature-mesh.ts';
import { eventually } from '../harness/eventually.ts';
import { sized } from '../harness/size-of-run.ts';
import { givenOwnServer } from './given-cluster.ts';
import { defineKinds, of, writeKubeconfig, writeService, writeSlice } from './mesh-objects.ts';

const ownServer = givenOwnServer();
const { cluster } = ownServer;
const folder = mkdtempSync(join(tmpdir(), 'cp-kubeconfig-'));
const rounds = sized({ quick: 3, short: 3, full: 20 });
/** The documented limit in milliseconds; longer next to ten other processes. */
const promisedMs = sized({ quick: 5_000, short: 5_000, full: 300 });
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
  for (const name of ['one', 'other']) {
    backends.set(name, await mesh.http(name));
    await serve(name, name);
  }
  await serve('web', 'one');
});

afterAll(async () => {
  await mesh?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const hostOf = (name: string): string => `${name}.example.com`;

/** A host and its backend. Kubernetes rejects slices with loopback addresses, so hosts under load are ServiceEntries. */
async function serve(name: string, backend: string): Promise<void> {
  const { address, port: number } = backends.get(backend)!;
  await cluster.apply(of.serviceEntries, {
    metadata: { name },
    spec: {
      ...{ hosts: [hostOf(name)], resolution: 'STATIC', ports: [{ number: port, name: 'http', protocol: 'HTTP' }] },
      endpoints: [{ address, ports: { http: number } }],
    },
  });
}

async function respondingBackend(): Promise<string> {
  return (await mesh.request('client', { port, host: hostOf('web') })).seen?.backend ?? 'nobody';
}

/** @returns milliseconds from before the write until the condition holds */
async function measureUntil(
  description: string,
  isSo: () => Promise<boolean>,
  write: () => Promise<unknown>,
): Promise<number> {
  const from = performance.now();
  await write();
  await eventually(description, isSo, { everyMs: 5 });
  return performance.now() - from;
}

const untilResponds = (backend: string, write: () => Promise<unknown>): Promise<number> =>
  measureUntil(`${backend} answers`, async () => (await respondingBackend().catch(() => '')) === backend, write);

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;

/** @param change applied in even rounds, reverted in odd ones; returns how long it took */
async function measureChange(description: string, change: (isThere: boolean) => Promise<number>): Promise<void> {
  const took: number[] = [];
  for (let round = 0; round < rounds; round++) took.push(await change(round % 2 === 0));
  console.log(`${description}: in force after ${took.map(Math.round).join(', ')} ms`);
  expect(median(took)).toBeLessThan(promisedMs);
}

it('Envoy applies a changed VirtualService of a cluster within the documented limit', async () => {
  await untilResponds('one', async () => {});
  const write = (backend: string) =>
    cluster.apply(of.virtualServices, {
      metadata: { name: 'web' },
      spec: { hosts: [hostOf('web')], http: [{ route: [{ destination: { host: hostOf(backend) } }] }] },
    });
  await measureChange('a VirtualService', (isThere) => {
    const backend = isThere ? 'other' : 'one';
    return untilResponds(backend, () => write(backend));
  });
  await cluster.delete(of.virtualServices, 'web');
  await untilResponds('one', async () => {});
});

it('Envoy applies the readiness of a pod within the documented limit', async () => {
  // The endpoints do not exist; Envoy's clusters page shows where it would send requests.
  const [steady, other] = ['192.0.2.10', '192.0.2.11'] as const;
  const write = (ready: boolean) => writeSlice(cluster, 'ready', [other], 80, { ready, name: 'ready-2' });
  await writeService(cluster, 'ready', [steady]);
  await write(true);
  const hasBoth = async (): Promise<boolean> => {
    const hosts = await mesh.envoy('client').admin('/clusters');
    return [steady, other].every((address) => hosts.includes(`::${address}:80::health_flags::healthy`));
  };
  await eventually('Envoy has both', hasBoth);
  await measureChange('readiness', (isThere) =>
    measureUntil(
      'Envoy has what is ready',
      async () => (await hasBoth()) !== isThere,
      () => write(!isThere),
    ),
  );
});

it('a killed API server fails no request, and changes apply within the documented limit after the server restarts', async () => {
  await untilResponds('one', () => serve('web', 'one'));
  await ownServer.server.kill();
  for (let request = 0; request < 50; request++) expect(await respondingBackend()).toBe('one');
  await ownServer.server.start();
  const took = await untilResponds('other', () => serve('web', 'other'));
  console.log(`after the outage: in force after ${Math.round(took)} ms`);
});
