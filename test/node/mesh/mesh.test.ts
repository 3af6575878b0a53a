/** Deployments with the sidecar of `pilot-discovery inject` on a real node: control plane, agents and Envoys, as in a user's cluster. */
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { resourceOf } from '../../../src/discovery/kubernetes/api-resource.ts';
import { eventually } from '../../harness/eventually.ts';
import { pilotDiscovery } from '../../harness/program-files.ts';
import { isFull } from '../../harness/size-of-run.ts';
import { imageHub, imageTag } from '../mesh-image.ts';
import { get } from '../node-request.ts';
import { resources } from '../resources.ts';
import type { RunningNode } from '../start-node.ts';
import { addressOf, applyManifests, podsOf, readyPods } from '../workloads.ts';
import { testFaults } from './faults.ts';
import { InstalledMesh } from './installed-mesh.ts';
import { interceptedApplications, testInterception } from './interception.ts';
import { testIstioctl } from './istioctl.ts';
import { testRevisions } from './revisions.ts';
import { application } from './sample-application.ts';

const run = promisify(execFile);
const dualStack = { ISTIO_DUAL_STACK: 'true' };
const values = { meshConfig: { defaultConfig: { proxyMetadata: dualStack } }, env: dualStack };
let mesh: InstalledMesh;
let node: RunningNode;

beforeAll(async () => {
  mesh = await InstalledMesh.start({ replicas: 2, values });
  node = mesh.node;
  // One Deployment is injected by the command and again by the webhook, the other one only by the webhook.
  await applyManifests(node, await injected(application('client')));
  await applyManifests(node, `${application('server', { replicas: 2 })}\n---\n${interceptedApplications()}`);
  const began = performance.now();
  await Promise.all([readyPods(node, 'client'), readyPods(node, 'server', 2)]);
  console.error(`applications are ready after ${Math.round(performance.now() - began)} ms`);
}, 1_800_000);
afterAll(() => node?.stop());

/** Runs the same command as users. */
async function injected(manifests: string): Promise<string> {
  const file = (extension: string): string => join(node.folder, `inject.${extension}`);
  const images = { proxy: { image: 'agent' }, proxy_init: { image: 'agent' } };
  const global = { hub: imageHub, tag: imageTag, imagePullPolicy: 'Never', ...images };
  writeFileSync(file('values'), JSON.stringify({ global }));
  writeFileSync(file('yaml'), manifests);
  const { executable, args } = pilotDiscovery();
  const flags = ['-f', file('yaml'), '--valuesFile', file('values'), '-n', node.cluster.namespace];
  return (await run(executable, [...args, 'inject', ...flags], { maxBuffer: 1 << 24 })).stdout;
}

it('a sidecar on a node sends requests by the name of a Service over mutual TLS to another sidecar', async () => {
  const { namespace } = node.cluster;
  const responses = await eventually('both pods of the server respond', async () => {
    const callResults = await Promise.all(Array.from({ length: 8 }, () => mesh.call('http://server')));
    expect(callResults.map(({ status }) => status)).toEqual(callResults.map(() => 200));
    const parsed = callResults.map(({ body }) => JSON.parse(body) as { pod: string; headers: Record<string, string> });
    return new Set(parsed.map(({ pod }) => pod)).size === 2 && parsed;
  });
  const identity = (account: string): string => `spiffe://cluster.local/ns/${namespace}/sa/${account}`;
  for (const { headers } of responses) {
    expect(headers['x-forwarded-client-cert']).toContain(`By=${identity('server')};`);
    expect(headers['x-forwarded-client-cert']).toContain(`URI=${identity('client')}`);
  }
});

it('a mesh on a node rejects plaintext from clients without a sidecar once the server requires mutual TLS', async () => {
  const [server] = await podsOf(node, 'server');
  const url = `http://${addressOf(server!)}:8080/`;
  expect(await get(node, url)).toMatchObject({ status: 200 });
  const metadata = { name: 'server' };
  await node.cluster.apply(resourceOf('PeerAuthentication'), {
    metadata,
    spec: { selector: { matchLabels: { app: 'server' } }, mtls: { mode: 'STRICT' } },
  });
  await eventually('plaintext is refused', () =>
    get(node, url).then(
      () => false,
      () => true,
    ),
  );
  expect(await mesh.call('http://server')).toMatchObject({ status: 200 });
  await node.cluster.delete(resourceOf('PeerAuthentication'), 'server');
});

testInterception(() => mesh);
testFaults(() => mesh);
if (isFull) testRevisions(() => mesh, values);
if (isFull) testIstioctl(() => mesh);

it('a mesh on a node loses no request when a pod of the server is deleted', async () => {
  const { cluster } = node;
  const [deleted] = await podsOf(node, 'server');
  await mesh.startLoad('http://server/slow');
  // Some requests are always in flight.
  await eventually('requests are sent', async () => (await mesh.load()).sent > 50);
  await cluster.delete(resources.Pod, deleted!.metadata.name);
  await eventually('the pod is replaced', async () => {
    const pods = await podsOf(node, 'server');
    return pods.length === 2 && pods.every(({ metadata }) => metadata.name !== deleted!.metadata.name);
  });
  await readyPods(node, 'server', 2);
  const { sent, failed } = await mesh.load();
  expect(failed).toEqual([]);
  expect(sent).toBeGreaterThan(50);
  // Checks that the load generator reports failures.
  await cluster.delete(resources.Deployment, 'server');
  await eventually('requests fail without a server', async () => (await mesh.load()).failed.length > 0);
  await mesh.results();
});
