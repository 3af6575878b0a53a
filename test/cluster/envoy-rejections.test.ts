/**
 * Rejections of a real Envoy and validation errors appear in the object's status, and disappear when it is repaired. Uses the CRDs of
 * `pilot-discovery crds` and a separate server.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ApiResource, resourceOf } from '../../src/discovery/kubernetes/api-resource.ts';
import { FeatureMesh } from '../e2e/features/harness/feature-mesh.ts';
import { eventually } from '../harness/eventually.ts';
import { sized } from '../harness/size-of-run.ts';
import { givenOwnServer } from './given-cluster.ts';
import { defineShippedKinds, of, writeKubeconfig } from './mesh-objects.ts';
import { Replicas } from './replica.ts';

const { cluster } = givenOwnServer();
const neverAborted = new AbortController().signal;
const folder = mkdtempSync(join(tmpdir(), 'cp-word-'));
/** The documented limit in milliseconds; longer next to ten other processes. */
const promisedMs = sized({ quick: 30_000, short: 30_000, full: 2_000 });
const waitsForDeath = sized({ short: false, full: true });
const filters = resourceOf('EnvoyFilter');
const quickSettings = { PILOT_LEASE_DURATION: '3s', PILOT_WORKLOAD_ENTRY_GRACE_PERIOD: '0s' };
const replicas = new Replicas(cluster, quickSettings);
let mesh: FeatureMesh;

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  readonly observedGeneration?: number;
}

beforeAll(async () => {
  await defineShippedKinds(cluster);
  const kubeconfig = join(folder, 'config');
  writeKubeconfig(kubeconfig, cluster);
  mesh = await FeatureMesh.start({
    proxies: { one: { namespace: cluster.namespace }, other: { namespace: cluster.namespace } },
    args: ['--registries', 'Kubernetes', '--kubeconfig', kubeconfig, '--namespace', cluster.namespace],
    env: quickSettings,
    explains: false,
  });
  await cluster.apply(of.serviceEntries, {
    metadata: { name: 'cart' },
    spec: {
      ...{
        hosts: ['cart.example.com'],
        resolution: 'STATIC',
        ports: [{ number: 8080, name: 'http', protocol: 'HTTP' }],
      },
      endpoints: [{ address: '192.0.2.1' }],
    },
  });
});

afterAll(async () => {
  await mesh?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const ring = (minimum: number) =>
  cluster.apply(filters, {
    metadata: { name: 'ring' },
    spec: {
      configPatches: [
        {
          ...{ applyTo: 'CLUSTER', match: { cluster: { name: 'outbound|8080||cart.example.com' } } },
          patch: {
            operation: 'MERGE',
            value: {
              lb_policy: 'RING_HASH',
              ring_hash_lb_config: { minimum_ring_size: minimum, maximum_ring_size: 64 },
            },
          },
        },
      ],
    },
  });

const route = (name: string, timeout: string) =>
  cluster.apply(of.virtualServices, {
    metadata: { name },
    spec: { hosts: ['cart.example.com'], http: [{ timeout, route: [{ destination: { host: 'cart.example.com' } }] }] },
  });

async function conditionsOf(resource: ApiResource, name: string): Promise<Record<string, Condition>> {
  const { namespace } = cluster;
  const { status } = await cluster.admin.request({ method: 'GET', resource, namespace, name }, neverAborted);
  const { conditions = [] } = (status ?? {}) as { conditions?: Condition[] };
  return Object.fromEntries(conditions.map((condition) => [condition.type, condition]));
}

/**
 * Waits until the conditions match.
 * @returns the conditions, and the time that it took
 */
async function waitForConditions(
  description: string,
  resource: ApiResource,
  name: string,
  isSo: (conditions: Record<string, Condition>) => boolean,
): Promise<{ conditions: Record<string, Condition>; tookMs: number }> {
  const from = performance.now();
  const conditions = await eventually(
    description,
    async () => {
      const now = await conditionsOf(resource, name);
      return isSo(now) ? now : undefined;
    },
    { everyMs: 20 },
  );
  return { conditions, tookMs: performance.now() - from };
}

/** Number of push contexts so far. */
async function contexts(): Promise<number> {
  const { version } = JSON.parse(await mesh.page('/debug/pushcontext')) as { version: string };
  return Number(version.slice(version.lastIndexOf('/') + 1));
}

/** Number of push contexts, once the last one contains the previous changes. */
async function settledContexts(): Promise<number> {
  let last = -1;
  return eventually('no more of them come', async () => {
    const previousCount = last;
    last = await contexts();
    if (previousCount === last) return last;
    await sleep(1_000);
    return undefined;
  });
}

it("a rejection by Envoy is a condition of the object with Envoy's message until the object is repaired", async () => {
  await ring(16);
  const upToDate = await waitForConditions(
    'both have it',
    filters,
    'ring',
    ({ Reconciled }) => Reconciled?.status === 'True',
  );
  expect(upToDate.conditions.Reconciled).toMatchObject({ reason: 'UpToDate', message: '2/2 proxies up to date' });
  const { metadata } = await ring(128);
  const rejectedResult = await waitForConditions(
    'it says so',
    filters,
    'ring',
    ({ Rejected }) => Rejected?.message.startsWith('2 of') === true || Rejected !== undefined,
  );
  console.log(`rejected: in the status after ${Math.round(rejectedResult.tookMs)} ms`);
  expect(rejectedResult.tookMs).toBeLessThan(promisedMs);
  expect(rejectedResult.conditions.Rejected).toMatchObject({ status: 'True', observedGeneration: metadata.generation });
  expect(rejectedResult.conditions.Rejected?.message).toMatch(
    /^[12] of 2 proxies reject cluster outbound\|8080\|\|cart\.example\.com: .*minimum_ring_size/,
  );
  expect(rejectedResult.conditions.Reconciled).toMatchObject({ status: 'False', reason: 'Rejected' });
  await ring(32);
  const repairedResult = await waitForConditions(
    'it is mended',
    filters,
    'ring',
    ({ Reconciled }) => Reconciled?.status === 'True',
  );
  console.log(`mended: in the status after ${Math.round(repairedResult.tookMs)} ms`);
  expect(Object.keys(repairedResult.conditions)).toEqual(['Reconciled']);
});

it('an invalid object has a condition and keeps its last valid version, and the repair removes the condition', async () => {
  await route('cart', '1s');
  await waitForConditions(
    'both have it',
    of.virtualServices,
    'cart',
    ({ Reconciled }) => Reconciled?.status === 'True',
  );
  // An error that no schema can express.
  await cluster.apply(of.virtualServices, {
    metadata: { name: 'cart' },
    spec: {
      hosts: ['cart.example.com'],
      http: [{ match: [{ uri: { regex: '(' } }], route: [{ destination: { host: 'cart.example.com' } }] }],
    },
  });
  const invalidResult = await waitForConditions(
    'it says so',
    of.virtualServices,
    'cart',
    ({ Invalid }) => Invalid !== undefined,
  );
  console.log(`a mistake: in the status after ${Math.round(invalidResult.tookMs)} ms`);
  expect(invalidResult.tookMs).toBeLessThan(promisedMs);
  expect(invalidResult.conditions.Invalid).toMatchObject({ status: 'True', reason: 'InvalidObject' });
  expect(invalidResult.conditions.Invalid?.message).toMatch(/^spec\.http\[0\]\.match\[0\]\.uri/);
  expect(invalidResult.conditions.Reconciled).toMatchObject({ status: 'False', reason: 'Invalid' });
  await route('cart', '2s');
  const repairedResult = await waitForConditions(
    'it is mended',
    of.virtualServices,
    'cart',
    ({ Reconciled }) => Reconciled?.status === 'True',
  );
  expect(Object.keys(repairedResult.conditions)).toEqual(['Reconciled']);
});

it('status writes cause no push, and leave fields of other writers unchanged', async () => {
  const foreignCondition = {
    type: 'Audited',
    status: 'True',
    reason: 'ByHand',
    message: 'by a person',
    lastTransitionTime: '2026-01-01T00:00:00Z',
  };
  await cluster.patch(of.virtualServices, 'cart', { status: { conditions: [foreignCondition] } }, 'status');
  const previousCount = await settledContexts();
  for (const [round, timeout] of ['3s', '4s', '5s'].entries()) {
    const { metadata } = await route('cart', timeout);
    const { conditions } = await waitForConditions(
      'both have it',
      of.virtualServices,
      'cart',
      ({ Reconciled }) => Reconciled?.status === 'True' && Reconciled.observedGeneration === metadata.generation,
    );
    expect(conditions.Audited).toEqual(foreignCondition);
    // One context per change of the object, and none for status writes.
    expect(await contexts()).toBe(previousCount + round + 1);
  }
});

it('the status contains a rejection by a proxy of a non-leading replica until it is corrected or the proxy disconnects', async () => {
  const { metadata } = await ring(16);
  const isDone = ({ Reconciled, Rejected }: Record<string, Condition>) =>
    Reconciled?.status === 'True' && Rejected === undefined;
  await waitForConditions('both have it', filters, 'ring', isDone);
  const secondReplica = await replicas.start('second');
  const stream = replicas.connect(secondReplica.plainPort, { ip: '10.9.0.7' });
  let isContent = false;
  const acknowledge = stream.onResponse;
  stream.onResponse = (response) => {
    const { typeUrl, nonce: responseNonce } = response;
    if (isContent) acknowledge(response);
    else
      stream.send({ typeUrl, responseNonce, errorDetail: { message: 'outbound|8080||cart.example.com: too small' } });
  };
  const isBad = ({ Rejected, Reconciled }: Record<string, Condition>) =>
    Rejected !== undefined && Reconciled?.status === 'False';
  const rejectedResult = await waitForConditions('it says so', filters, 'ring', isBad);
  console.log(`rejected at the other replica: in the status after ${Math.round(rejectedResult.tookMs)} ms`);
  expect(rejectedResult.conditions.Rejected).toMatchObject({ status: 'True', observedGeneration: metadata.generation });
  expect(rejectedResult.conditions.Rejected?.message).toMatch(
    /^1 of 1 proxy rejects cluster outbound\|8080\|\|cart\.example\.com: .*too small \(reported by second_[0-9a-f-]{36}\)$/,
  );
  // The other replica reports its proxy with its next Lease renewal. A status may have been written before that.
  const countedResult = await waitForConditions(
    'the proxy of the other replica is counted',
    filters,
    'ring',
    ({ Reconciled }) => Boolean(Reconciled?.message.startsWith('2/3 ')),
  );
  expect(countedResult.conditions.Reconciled).toMatchObject({
    ...{ status: 'False', reason: 'Rejected', observedGeneration: metadata.generation },
    message: '2/3 proxies up to date, proxies of another replica reject it',
  });
  isContent = true;
  // Repairs another object, and leaves the filter unchanged.
  await cluster.apply(of.serviceEntries, {
    metadata: { name: 'user' },
    spec: {
      ...{ hosts: ['user.example.com'], resolution: 'STATIC', endpoints: [{ address: '192.0.2.2' }] },
      ports: [{ number: 8080, name: 'http', protocol: 'HTTP' }],
    },
  });
  const repairedResult = await waitForConditions('it is mended', filters, 'ring', isDone);
  console.log(`mended there: in the status after ${Math.round(repairedResult.tookMs)} ms`);
  isContent = false;
  await ring(32);
  const secondRejection = await waitForConditions('it says so again', filters, 'ring', isBad);
  console.log(`rejected there again: in the status after ${Math.round(secondRejection.tookMs)} ms`);
  // A replica counts as stopped at the first check at which its Lease has expired unchanged.
  if (!waitsForDeath) return;
  await secondReplica.program.stop({ signal: 'SIGKILL' });
  const endedResult = await waitForConditions('nobody says it any more', filters, 'ring', isDone);
  console.log(`of a replica that was killed: gone after ${Math.round(endedResult.tookMs)} ms`);
});
