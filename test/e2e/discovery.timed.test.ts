/** The control plane with a manually started Envoy routes requests as the mesh's files specify. (With agents: weights.timed.test.ts.) */

import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { envoyBinary } from '../fixtures/real-envoy.ts';
import { adsBootstrap } from '../harness/ads-bootstrap.ts';
import { checkTraces } from '../harness/check-traces.ts';
import { eventually } from '../harness/eventually.ts';
import { freePorts } from '../harness/free-ports.ts';
import { loggedLine } from '../harness/logged-line.ts';
import { Program } from '../harness/program.ts';
import { msWithoutQueueing } from '../harness/without-queueing.ts';
import { type SampleService, startSampleService } from '../sample/sample-service.ts';

const host = 'cart.example.com';

interface Ports {
  readonly xds: number;
  readonly http: number;
  readonly admin: number;
  readonly gateway: number;
}

interface Weights {
  readonly v1: number;
  readonly v2: number;
}

function gateway(port: number): string {
  return `apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: front, namespace: shop}
spec:
  selector: {istio: ingressgateway}
  servers: [{port: {number: ${port}, name: http, protocol: HTTP}, hosts: [${host}]}]
`;
}

function routes({ v1, v2 }: Weights): string {
  return `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: cart, namespace: shop}
spec:
  hosts: [${host}]
  gateways: [front]
  http:
    - route:
        - {destination: {host: ${host}, subset: v1}, weight: ${v1}}
        - {destination: {host: ${host}, subset: v2}, weight: ${v2}}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: cart, namespace: shop}
spec:
  host: ${host}
  subsets: [{name: v1, labels: {version: v1}}, {name: v2, labels: {version: v2}}]
`;
}

function service(v1: SampleService, v2: SampleService): string {
  return `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: cart, namespace: shop}
spec:
  hosts: [${host}]
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints:
    - {address: 127.0.0.1, ports: {http: ${v1.port}}, labels: {version: v1}}
    - {address: 127.0.0.1, ports: {http: ${v2.port}}, labels: {version: v2}}
`;
}

describe.each([
  ['state of the world', false],
  ['delta', true],
])('a real Envoy with %s xDS', (_, delta) => {
  const root = mkdtempSync(join(tmpdir(), 'chartpilot-e2e-'));
  const directory = join(root, 'config');
  const trace = join(root, 'discovery.trace.ndjson');
  const programs: Program[] = [];
  const samples: SampleService[] = [];
  let ports: Ports;
  let discovery: Program;

  beforeAll(async () => {
    const [xds, http, admin, gatewayPort] = (await freePorts(4)) as [number, number, number, number];
    ports = { xds, http, admin, gateway: gatewayPort };
    samples.push(await startSampleService({ version: 'v1' }), await startSampleService({ version: 'v2' }));
    mkdirSync(directory);
    write('gateway.yaml', gateway(ports.gateway));
    write('routes.yaml', routes({ v1: 100, v2: 0 }));
    write('service.yaml', service(samples[0]!, samples[1]!));
    const node = {
      id: 'router~127.0.0.1~front-0.shop~shop.svc.cluster.local',
      cluster: 'front',
      metadata: { NAMESPACE: 'shop', LABELS: { istio: 'ingressgateway' } },
    };
    const bootstrap = adsBootstrap({ node, xdsPort: ports.xds, adminPort: ports.admin, delta });
    writeFileSync(join(root, 'envoy.json'), JSON.stringify(bootstrap));

    const programOptions = { env: process.env, cwd: root };
    const args = ['discovery', '--registries=', '--configDir', directory, '--grpcAddr', `127.0.0.1:${ports.xds}`];
    args.push(
      '--httpAddr',
      `127.0.0.1:${ports.http}`,
      '--monitoringAddr=',
      '--trace',
      trace,
      '--shutdownDuration',
      '3s',
    );
    discovery = Program.start('pilot-discovery', { ...programOptions, args });
    const envoyArgs = ['-c', join(root, 'envoy.json'), '--disable-hot-restart', '--concurrency', '1', '-l', 'warning'];
    const envoy = Program.run('envoy', envoyBinary(), { ...programOptions, args: envoyArgs });
    programs.push(envoy, discovery);
    await eventually('a request arrives', async () => (await requestVersion()) === 'v1', {
      hopeless: () => programs.map((program) => program.hopeless()).find(Boolean),
    });
  });

  afterAll(async () => {
    for (const program of programs) await program.stop();
    for (const sample of samples) await sample.close();
    const { code, output } = await checkTraces([trace]);
    rmSync(root, { recursive: true, force: true });
    expect(code, output).toBe(0);
  });

  /** Replaces the file by a rename, as most editors do. */
  function write(name: string, text: string): void {
    writeFileSync(join(directory, `.${name}.saving`), text);
    renameSync(join(directory, `.${name}.saving`), join(directory, name));
  }

  /** @returns the version of the backend that responded, or the status of a response from Envoy */
  async function requestVersion(): Promise<string> {
    // Envoy routes by this header, which fetch cannot set.
    const { request } = await import('node:http');
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    request({ port: ports.gateway, host: '127.0.0.1', headers: { host }, agent: false }, (response) => {
      response.resume();
      resolve(String(response.headers['x-version'] ?? response.statusCode));
    })
      .on('error', reject)
      .end();
    return promise;
  }

  /** Number of responses from each version. */
  async function split(requests: number): Promise<Record<string, number>> {
    const counts: Record<string, number> = {};
    for (let i = 0; i < requests; i++) {
      const version = await requestVersion();
      counts[version] = (counts[version] ?? 0) + 1;
    }
    return counts;
  }

  test('applies changed weights within a second', async () => {
    const inForceMs = await msWithoutQueueing([process.pid, ...programs.map(({ pid }) => pid)], async () => {
      write('routes.yaml', routes({ v1: 0, v2: 100 }));
      await eventually('the new weights hold', async () => (await requestVersion()) === 'v2', { everyMs: 5 });
    });
    console.log(`new weights in force after ${Math.round(inForceMs)} ms, in which there was a processor`);
    expect(inForceMs).toBeLessThan(1_000);
    expect(await split(20)).toEqual({ v2: 20 });

    write('routes.yaml', routes({ v1: 50, v2: 50 }));
    await eventually('both are asked', async () => Object.keys(await split(10)).length === 2);
    const { v1 = 0, v2 = 0, ...unexpected } = await split(100);
    expect(unexpected).toEqual({});
    // Five standard deviations.
    expect(Math.abs(v1 - v2)).toBeLessThan(50);
  });

  test('keeps its configuration while a file is invalid and reported, and applies the repaired file', async () => {
    write('routes.yaml', routes({ v1: 100, v2: 0 }));
    await eventually('the weights hold', async () => (await split(10)).v1 === 10);
    write('routes.yaml', routes({ v1: 0, v2: 100 }).replace('weight: 100', 'wieght: 100'));
    await discovery.line(
      loggedLine('object.rejected', {
        ...{ place: /routes\.yaml:\d+/, object: 'VirtualService shop/cart', reason: /wieght/ },
      }),
    );
    await sleep(300);
    expect(await split(20)).toEqual({ v1: 20 });
    write('routes.yaml', routes({ v1: 0, v2: 100 }));
    await eventually('the mended file holds', async () => (await split(10)).v2 === 10);
  });

  test('accepts every response', async () => {
    type Sync = { resources: Record<string, { sent: string; acked: string; lastError: string }> }[];
    const state = await eventually('everything is acknowledged', async () => {
      const response = await fetch(`http://127.0.0.1:${ports.http}/debug/syncz`);
      const [proxy] = (await response.json()) as Sync;
      const types = Object.values(proxy!.resources);
      return types.length === 4 && types.every(({ sent, acked }) => sent === acked) && types;
    });
    expect(state.map(({ lastError }) => lastError)).toEqual(['', '', '', '']);
    const dump = await fetch(
      `http://127.0.0.1:${ports.http}/debug/config_dump?include_eds&proxyID=router~127.0.0.1~front-0.shop~shop.svc.cluster.local`,
    );
    expect(dump.status).toBe(200);
    expect(await dump.text()).toContain(`outbound|80|v1|${host}`);
  });

  test('keeps serving after the control plane has stopped', async () => {
    // The deadline is 3 s; a control plane that waited for its proxies to disconnect would never stop.
    const stopping = async (): Promise<void> => expect(await discovery.stop()).toEqual({ code: 0, signal: null });
    expect(await msWithoutQueueing([process.pid, discovery.pid], stopping)).toBeLessThan(5_000);
    expect(await split(20)).toEqual({ v2: 20 });
    await sleep(2_000);
    expect(await split(20)).toEqual({ v2: 20 });
  });
});
