/**
 * Stops a control plane with 200 proxies: it ends all streams immediately and cleanly, and removes nothing from any proxy.
 */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { AdsTestClient, type DeltaStream, type SotwStream, typeUrls } from '../ads-client.ts';
import { checkTraces } from '../harness/check-traces.ts';
import { eventually } from '../harness/eventually.ts';
import { freePorts } from '../harness/free-ports.ts';
import { loggedLine } from '../harness/logged-line.ts';
import { Program } from '../harness/program.ts';
import { msWithoutQueueing } from '../harness/without-queueing.ts';

const proxies = 200;
/** Long enough that even on a busy machine, a stream that ends immediately differs from one that waits for the deadline. */
const shutdownMs = 40_000;

let root: string;
let trace: string;
let xdsPort: number;
let discovery: Program;
const clients: AdsTestClient[] = [];

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), 'chartpilot-stop-'));
  trace = join(root, 'discovery.trace');
  const config = join(root, 'config');
  mkdirSync(config);
  for (let i = 0; i < 20; i++) writeFileSync(join(config, `service-${i}.yaml`), serviceEntry(i));
  const [xds, http] = await freePorts(2);
  xdsPort = xds!;
  discovery = Program.start('pilot-discovery', {
    args: [
      ...['discovery', '--registries=', '--configDir', config, '--trace', trace, '--monitoringAddr='],
      ...['--grpcAddr', `127.0.0.1:${xds}`, '--httpAddr', `127.0.0.1:${http}`, '--shutdownDuration', `${shutdownMs}ms`],
    ],
    env: process.env,
    cwd: root,
  });
  await eventually('it is ready', async () => (await fetch(`http://127.0.0.1:${http}/ready`)).status === 200, {
    hopeless: () => discovery.hopeless(),
  });
});

afterEach(async () => {
  for (const client of clients.splice(0)) client.close();
  await discovery.stop({ signal: 'SIGKILL' });
  rmSync(root, { recursive: true, force: true });
});

function serviceEntry(number: number): string {
  return `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: s${number}, namespace: shop}
spec:
  hosts: [s${number}.example.com]
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: 10.1.0.${number + 1}}]
`;
}

interface Proxy {
  readonly stream: SotwStream | DeltaStream;
  /** Number of resources in each response, and of those removed by delta. */
  readonly sizes: () => { readonly resourceCount: number; readonly removedCount: number }[];
}

/**
 * A client that requests clusters and listeners and acknowledges like Envoy. Every second one uses delta.
 * @param acknowledges if false, the server waits for acknowledgements until the deadline
 */
function connect(number: number, acknowledges = true): Proxy {
  const client = new AdsTestClient(xdsPort);
  clients.push(client);
  const node = {
    id: `sidecar~10.2.${number >> 8}.${number & 255}~web-${number}.shop~shop.svc.cluster.local`,
    cluster: 'web',
    metadata: { NAMESPACE: 'shop', LABELS: { app: 'web' } },
  };
  const types = [typeUrls.CDS, typeUrls.LDS];
  if (number % 2 === 0) {
    const stream = client.sotw();
    stream.onResponse = ({ typeUrl, nonce, versionInfo }) =>
      acknowledges && stream.send({ typeUrl, responseNonce: nonce, versionInfo });
    for (const typeUrl of types) stream.send({ node, typeUrl });
    return {
      stream,
      sizes: () => stream.responses.map(({ resources }) => ({ resourceCount: resources.length, removedCount: 0 })),
    };
  }
  const stream = client.delta();
  stream.onResponse = ({ typeUrl, nonce }) => acknowledges && stream.send({ typeUrl, responseNonce: nonce });
  for (const typeUrl of types) stream.send({ node, typeUrl });
  const sizes = () =>
    stream.responses.map(({ resources, removedResources }) => ({
      resourceCount: resources.length,
      removedCount: removedResources.length,
    }));
  return { stream, sizes };
}

test(`a stopping control plane ends the streams of ${proxies} proxies together, and removes none of their resources`, async () => {
  const connectedProxies = Array.from({ length: proxies }, (_, number) => connect(number));
  await eventually('all are configured', () => connectedProxies.every(({ sizes }) => sizes().length >= 2), {
    hopeless: () => discovery.hopeless(),
  });
  const sizesBefore = connectedProxies.map(({ sizes }) => sizes());
  expect(sizesBefore.flat().every(({ resourceCount, removedCount }) => resourceCount > 0 && removedCount === 0)).toBe(
    true,
  );

  const signalledAt = performance.now();
  const endings = connectedProxies.map(async ({ stream }) => {
    const { code, details } = await stream.ended;
    return { code, details, afterMs: performance.now() - signalledAt };
  });
  discovery.signal('SIGTERM');
  const [{ code, signal }, connectionEnds] = [await discovery.exited, await Promise.all(endings)];
  const endedAfterMs = performance.now() - signalledAt;

  expect([code, signal]).toEqual([0, null]);
  expect(endedAfterMs).toBeLessThan(shutdownMs / 2);
  // No proxy receives a response during the shutdown, so it keeps its configuration.
  expect(connectedProxies.map(({ sizes }) => sizes())).toEqual(sizesBefore);
  // The server ended the stream with a status.
  for (const { code: ending, details } of connectionEnds)
    expect([status.OK, status.UNAVAILABLE], details).toContain(ending);
  const times = connectionEnds.map(({ afterMs }) => afterMs).sort((a, b) => a - b);
  expect(times.at(-1)!).toBeLessThan(shutdownMs / 3);
  console.log(
    `${proxies} streams ended after ${Math.round(times[0]!)} to ${Math.round(times.at(-1)!)} ms, the program after ${Math.round(endedAfterMs)} ms`,
  );
  const check = await checkTraces([trace]);
  expect(check.code, check.output).toBe(0);
});

test('a stopping control plane exits immediately on a second signal', async () => {
  const connectedProxies = Array.from({ length: 20 }, (_, number) => connect(number, false));
  await eventually('all are configured', () => connectedProxies.every(({ sizes }) => sizes().length >= 2));
  // After one signal, the control plane waits for acknowledgements until its deadline.
  const tookMs = await msWithoutQueueing([process.pid, discovery.pid], async () => {
    discovery.signal('SIGTERM');
    await discovery.line(loggedLine('state.changed', { actor: 'discovery', to: 'draining' }));
    discovery.signal('SIGTERM');
    expect(await discovery.exited).toEqual({ code: 0, signal: null });
  });
  expect(tookMs).toBeLessThan(shutdownMs / 3);
  const responses = connectedProxies.map(({ sizes }) => sizes().length);
  for (const { stream } of connectedProxies) await stream.ended;
  expect(connectedProxies.map(({ sizes }) => sizes().length)).toEqual(responses);
});
