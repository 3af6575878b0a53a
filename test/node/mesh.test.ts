/** Deployments with the sidecar of `pilot-discovery inject` on a real node: control plane, agents and Envoys as a user's cluster runs them. */
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { resourceOf } from '../../src/discovery/kubernetes/api-resource.ts';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { findOrBuild, helm } from '../cluster/go-program.ts';
import { defineShippedKinds } from '../cluster/mesh-objects.ts';
import { envoyBinary } from '../fixtures/real-envoy.ts';
import { eventually } from '../harness/eventually.ts';
import { pilotDiscovery } from '../harness/program-files.ts';
import { startClusterDns } from './cluster-dns.ts';
import { meshImage, stageMeshImage } from './mesh-image.ts';
import { get } from './node-request.ts';
import { resources } from './resources.ts';
import { type RunningNode, startNode } from './start-node.ts';
import { addressOf, applyManifests, podsOf, readyPods } from './workloads.ts';

const say = (line: string): void => console.error(line);
const system = 'istio-system';
const run = promisify(execFile);
let node: RunningNode;

beforeAll(async () => {
  const helmBinary = await findOrBuild(helm, say);
  node = await startNode();
  const imported = stageMeshImage(node.folder, envoyBinary()).then((image) => node.importImage(image));
  await Promise.all([imported, startClusterDns(node), defineShippedKinds(node.cluster)]);
  await applyManifests(node, `{ apiVersion: v1, kind: Namespace, metadata: { name: ${system} } }`);
  await applyManifests(node, await renderedChart(helmBinary));
  await readyPods(node, 'istiod', 1, system);
  await applyManifests(node, await injected(`${application('client', 1)}---\n${application('server', 2)}`));
  await Promise.all([readyPods(node, 'client'), readyPods(node, 'server', 2)]);
}, 1_800_000);
afterAll(() => node?.stop());

async function renderedChart(helmBinary: string): Promise<string> {
  const [repository, tag] = meshImage.split(':');
  const values = [`image.repository=${repository}`, `image.tag=${tag}`, 'image.pullPolicy=Never', 'replicas=1'];
  const args = ['template', 'mesh', 'deploy/chart', '--namespace', system, '--set', values.join(',')];
  const env = { PATH: process.env.PATH, HOME: node.folder };
  return (await run(helmBinary, args, { cwd: packageRoot(), env })).stdout;
}

/** Runs the command that a user runs. */
async function injected(manifests: string): Promise<string> {
  const [image = '', tag] = meshImage.split(':');
  const [hub, name] = image.split('/');
  const file = (extension: string): string => join(node.folder, `inject.${extension}`);
  const global = { hub, tag, imagePullPolicy: 'Never', proxy: { image: name }, proxy_init: { image: name } };
  writeFileSync(file('values'), JSON.stringify({ global }));
  writeFileSync(file('yaml'), manifests);
  const { executable, args } = pilotDiscovery();
  const flags = ['-f', file('yaml'), '--valuesFile', file('values'), '-n', node.cluster.namespace];
  return (await run(executable, [...args, 'inject', ...flags], { maxBuffer: 1 << 24 })).stdout;
}

/** Responds with its pod's name and the headers of the request, or to `/slow` after 300 ms; `/load?url=` sends requests until `/results`. */
const program = `
const http = require('node:http');
const load = { sent: 0, failed: [], isRunning: false };
const send = (url) => new Promise((resolve, reject) => {
  const sent = http.get(url, { agent: false }, (response) => {
    let body = '';
    response.on('data', (data) => { body += data; });
    response.on('error', reject);
    response.on('end', () => resolve({ status: response.statusCode, body }));
  });
  sent.on('error', reject);
});
async function generate(url) {
  load.isRunning = true;
  while (load.isRunning) {
    const failure = await send(url).then(({ status, body }) => status === 200 ? undefined : status + ' ' + body, String);
    load.sent++;
    if (failure !== undefined) load.failed.push(failure);
  }
}
const server = http.createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url, 'http://pod');
  const respond = (value) => response.end(JSON.stringify(value));
  const url = searchParams.get('url');
  if (pathname === '/slow') setTimeout(() => respond({}), 300);
  else if (pathname === '/call') send(url).then(respond, (error) => respond({ status: 0, body: String(error) }));
  else if (pathname === '/load') { for (let i = 0; i < 8; i++) void generate(url); respond(load); }
  else if (pathname === '/sent') respond(load);
  else if (pathname === '/results') { load.isRunning = false; respond(load); }
  else respond({ pod: process.env.HOSTNAME, headers: request.headers });
}).listen(8080);
process.on('SIGTERM', () => server.close(() => process.exit()));
`;

function application(name: string, replicas: number): string {
  return `
apiVersion: v1
kind: ServiceAccount
metadata: { name: ${name} }
---
apiVersion: v1
kind: Service
metadata: { name: ${name} }
spec: { selector: { app: ${name} }, ports: [{ name: http, port: 80, targetPort: 8080 }] }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: ${name} }
spec:
  replicas: ${replicas}
  selector: { matchLabels: { app: ${name} } }
  template:
    metadata:
      labels: { app: ${name} }
      annotations: { sidecar.istio.io/proxyCPU: 10m, sidecar.istio.io/proxyMemory: 64Mi }
    spec:
      serviceAccountName: ${name}
      terminationGracePeriodSeconds: 20
      containers:
        - name: app
          image: ${meshImage}
          imagePullPolicy: Never
          command: [node, -e, ${JSON.stringify(program)}]
          ports: [{ containerPort: 8080 }]
          securityContext: { runAsUser: 1000 }
          readinessProbe: { httpGet: { path: /, port: 8080 }, periodSeconds: 1 }
          lifecycle: { preStop: { sleep: { seconds: 3 } } }
`;
}

/** A request that the client's application sends. */
async function call(url: string): Promise<{ status: number; body: string }> {
  const [client] = await podsOf(node, 'client');
  const response = await get(node, `http://${addressOf(client!)}:8080/call?url=${encodeURIComponent(url)}`);
  return JSON.parse(response.body);
}

it('sends a request by the name of a Service over mutual TLS from sidecar to sidecar', async () => {
  const { namespace } = node.cluster;
  const responses = await eventually('both pods of the server respond', async () => {
    const sent = await Promise.all(Array.from({ length: 8 }, () => call('http://server')));
    expect(sent.map(({ status }) => status)).toEqual(sent.map(() => 200));
    const parsed = sent.map(({ body }) => JSON.parse(body) as { pod: string; headers: Record<string, string> });
    return new Set(parsed.map(({ pod }) => pod)).size === 2 && parsed;
  });
  const identity = (account: string): string => `spiffe://cluster.local/ns/${namespace}/sa/${account}`;
  for (const { headers } of responses) {
    expect(headers['x-forwarded-client-cert']).toContain(`By=${identity('server')};`);
    expect(headers['x-forwarded-client-cert']).toContain(`URI=${identity('client')}`);
  }
});

it('refuses plaintext of clients without a sidecar once the server requires mutual TLS', async () => {
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
  expect(await call('http://server')).toMatchObject({ status: 200 });
  await node.cluster.delete(resourceOf('PeerAuthentication'), 'server');
});

it('loses no request when a pod of the server is deleted', async () => {
  const { cluster } = node;
  const client = addressOf((await podsOf(node, 'client'))[0]!);
  const control = async (path: string): Promise<{ sent: number; failed: string[] }> =>
    JSON.parse((await get(node, `http://${client}:8080/${path}`)).body);
  const [deleted] = await podsOf(node, 'server');
  await control(`load?url=${encodeURIComponent('http://server/slow')}`);
  // Some are in flight at each moment.
  await eventually('requests are sent', async () => (await control('sent')).sent > 50);
  await cluster.delete(resources.Pod, deleted!.metadata.name);
  await eventually('the pod is replaced', async () => {
    const pods = await podsOf(node, 'server');
    return pods.length === 2 && pods.every(({ metadata }) => metadata.name !== deleted!.metadata.name);
  });
  await readyPods(node, 'server', 2);
  const { sent, failed } = await control('sent');
  expect(failed).toEqual([]);
  expect(sent).toBeGreaterThan(50);
  // The load generator does report failures.
  await cluster.delete(resources.Deployment, 'server');
  await eventually('requests fail without a server', async () => (await control('sent')).failed.length > 0);
  await control('results');
});
