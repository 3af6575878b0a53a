/** Sends requests through a real Envoy with generated resources, to backends that report what they received. */
import { createServer, request as httpRequest, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { shapeOf } from '../../src/model/proxy/proxy-shape.ts';
import { type GivenNode, givenMesh, givenProxy } from '../fixtures/given-mesh.ts';
import { type RealEnvoy, startRealEnvoy } from './ads-envoy.ts';
import { type AdsStandIn, startAdsStandIn } from './ads-stand-in.ts';
import { generate } from './case.ts';

export interface TestResponse {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

/** A request as received by a backend, with the backend's name. */
export interface ReceivedRequest {
  readonly backend: string;
  readonly url: string;
  readonly headers: Record<string, string>;
}

export async function sendRequest(
  port: number,
  path: string,
  headers: Record<string, string> = {},
): Promise<TestResponse> {
  return new Promise((resolve, reject) => {
    const clientRequest = httpRequest({ host: '127.0.0.1', port, path, headers, agent: false }, (response) => {
      let body = '';
      response.on('data', (chunk: Buffer) => {
        body += chunk.toString();
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body }));
    });
    clientRequest.on('error', reject);
    clientRequest.end();
  });
}

export async function fetchSeen(
  port: number,
  path: string,
  headers: Record<string, string> = {},
): Promise<ReceivedRequest> {
  const response = await sendRequest(port, path, headers);
  if (response.status !== 200) throw new Error(`${path}: ${response.status} ${response.body}`);
  return JSON.parse(response.body) as ReceivedRequest;
}

/** Reports each request that it receives. */
export async function startBackend(name: string): Promise<{ port: number; close: () => void }> {
  const server = createServer((request, response) =>
    response.end(JSON.stringify({ backend: name, url: request.url, headers: request.headers })),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { port: (server.address() as AddressInfo).port, close: () => server.close() };
}

/** An Envoy with the generated resources for a node of a mesh. */
export async function startProxy(
  yaml: string,
  node: GivenNode,
  probePort: number,
): Promise<{ close(): Promise<void> }> {
  const { context } = givenMesh(yaml);
  const proxy = givenProxy(node);
  const resources = generate({ push: context, shape: shapeOf(proxy, context) });
  const ads: AdsStandIn = await startAdsStandIn(Object.values(resources).flat());
  const envoy: RealEnvoy = await startRealEnvoy(ads.port, proxy);
  const close = async (): Promise<void> => {
    await envoy.stop();
    ads.close();
  };
  const deadline = performance.now() + 90_000;
  while ((await sendRequest(probePort, '/', { host: 'probe' }).catch(() => undefined)) === undefined) {
    if (performance.now() > deadline || ads.refusals.length > 0) {
      await close();
      throw new Error(`nothing listens on ${probePort}:\n${ads.refusals.join('\n')}\n${envoy.log()}`);
    }
    await sleep(50);
  }
  return { close };
}
