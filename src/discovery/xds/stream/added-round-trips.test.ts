/** Counts round trips until routes to new clusters arrive. The client responds like Envoy when no further response arrives for some time. */
import { fromBinary } from '@bufbuild/protobuf';
import { afterEach, describe, expect, test } from 'vitest';
import { type AdsTestClient, type DeltaStream, type SotwStream, typeUrls } from '../../../../test/ads-client.ts';
import { ControlPlane, sidecar, stopControlPlanes } from '../../../../test/harness/control-plane.ts';
import { slowness } from '../../../../test/harness/slowness.ts';
import { Cluster_DiscoveryType, ClusterSchema } from '../../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import { ClusterLoadAssignmentSchema } from '../../../gen/envoy/config/endpoint/v3/endpoint_pb.ts';

afterEach(stopControlPlanes);

const { CDS, EDS, LDS, RDS } = typeUrls;
const port = 18_090;
const node = { ...sidecar, metadata: { ...sidecar.metadata, INTERCEPTION_MODE: 'REDIRECT' } };

const entry = (resolution: 'STATIC' | 'DNS'): string => `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: cart, namespace: shop}
spec:
  hosts: [cart.shop.test]
  resolution: ${resolution}
  ports: [{number: ${port}, name: http, protocol: HTTP}]
  endpoints: [{address: ${resolution === 'DNS' ? 'localhost' : '127.0.0.1'}, labels: {version: v1}}]
`;

const routesTo = (subset: string, timeout = '1s'): string => `apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: cart, namespace: shop}
spec: {host: cart.shop.test, subsets: [{name: ${subset}, labels: {version: v1}}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: cart, namespace: shop}
spec:
  hosts: [cart.shop.test]
  http: [{timeout: ${timeout}, route: [{destination: {host: cart.shop.test, subset: ${subset}}}]}]
`;

/** Relevant fields of a response in either protocol. */
interface Received {
  readonly typeUrl: string;
  readonly nonce: string;
  readonly version: string;
  readonly resources: readonly Uint8Array[];
}

/** Sends Envoy's requests. */
class Client {
  readonly #stream: SotwStream | DeltaStream;
  readonly #delta: boolean;
  readonly #receivedResponses: Received[] = [];
  #processedCount = 0;
  /** Subscribed EDS names, and those with an assignment. */
  readonly #subscribedNames = new Set<string>();
  readonly #assignedNames = new Set<string>();
  #unacknowledgedResponses: Received[] = [];

  constructor(client: AdsTestClient, delta: boolean) {
    this.#delta = delta;
    const stream = delta ? client.delta() : client.sotw();
    stream.onResponse = (response: { typeUrl: string; nonce: string; resources: readonly object[] }) => {
      const resources = response.resources as readonly { value?: Uint8Array; resource?: { value: Uint8Array } }[];
      this.#receivedResponses.push({
        typeUrl: response.typeUrl,
        nonce: response.nonce,
        version: 'versionInfo' in response ? String(response.versionInfo) : '',
        resources: resources.map(({ value, resource }) => value ?? resource!.value),
      });
    };
    this.#stream = stream;
  }

  subscribe(typeUrl: string, names: readonly string[] = []): void {
    const request = this.#delta ? { resourceNamesSubscribe: [...names] } : { resourceNames: [...names] };
    this.#stream.send({ node, typeUrl, ...request } as never);
  }

  /**
   * Responds until RDS arrives.
   * @returns the number of required round trips
   */
  async roundTripsUntilRoutes(quietMs: number): Promise<number> {
    for (let trips = 0; ; trips++) {
      const responses = await this.#untilQuiet(quietMs, 400);
      if (responses.length === 0) throw new Error(`no route configuration after ${trips} round trips`);
      const isDone = responses.some(({ typeUrl }) => typeUrl === RDS);
      for (const response of responses) this.#respond(response);
      if (isDone) return trips;
    }
  }

  async waitUntilQuiet(quietMs: number): Promise<void> {
    for (;;) {
      const responses = await this.#untilQuiet(quietMs, 2);
      if (responses.length === 0) return;
      for (const response of responses) this.#respond(response);
    }
  }

  /** Responses since the last call, collected until a pause. Waits several pauses for the first one. */
  async #untilQuiet(quietMs: number, times: number): Promise<Received[]> {
    const deadline = performance.now() + times * quietMs;
    let seenCount = -1;
    while (
      seenCount !== this.#receivedResponses.length ||
      (seenCount === this.#processedCount && performance.now() < deadline)
    ) {
      seenCount = this.#receivedResponses.length;
      await new Promise((resolve) => setTimeout(resolve, quietMs));
    }
    const responses = this.#receivedResponses.slice(this.#processedCount);
    this.#processedCount = this.#receivedResponses.length;
    return responses;
  }

  #respond(response: Received): void {
    if (response.typeUrl === CDS) {
      this.#unacknowledgedResponses.push(response);
      const clusters = response.resources.map((value) => fromBinary(ClusterSchema, value));
      const endpointNames = clusters
        .filter(({ clusterDiscoveryType: { value } }) => value === Cluster_DiscoveryType.EDS)
        .map(({ name }) => name);
      const addedNames = endpointNames.filter((name) => !this.#subscribedNames.has(name));
      for (const name of endpointNames) this.#subscribedNames.add(name);
      if (addedNames.length > 0) this.#subscribeEndpoints(addedNames);
    } else {
      if (response.typeUrl === EDS) {
        for (const value of response.resources) {
          this.#assignedNames.add(fromBinary(ClusterLoadAssignmentSchema, value).clusterName);
        }
      }
      this.#acknowledge(response);
    }
    // Envoy acknowledges clusters when none is warming.
    if (![...this.#subscribedNames].every((name) => this.#assignedNames.has(name))) return;
    for (const unacknowledged of this.#unacknowledgedResponses.splice(0)) this.#acknowledge(unacknowledged);
  }

  #subscribeEndpoints(addedNames: readonly string[]): void {
    if (this.#delta) {
      this.subscribe(EDS, addedNames);
      return;
    }
    const last = this.#receivedResponses.findLast(({ typeUrl }) => typeUrl === EDS);
    const nonces = last === undefined ? {} : { versionInfo: last.version, responseNonce: last.nonce };
    this.#stream.send({ typeUrl: EDS, resourceNames: [...this.#subscribedNames], ...nonces } as never);
  }

  #acknowledge({ typeUrl, nonce, version }: Received): void {
    const names = typeUrl === EDS ? [...this.#subscribedNames] : typeUrl === RDS ? [String(port)] : [];
    const versionFields = this.#delta ? {} : { versionInfo: version, resourceNames: names };
    this.#stream.send({ typeUrl, responseNonce: nonce, ...versionFields } as never);
  }
}

type StartedClient = Awaited<ReturnType<typeof startClient>>;

async function startClient(delta: boolean, resolution: 'STATIC' | 'DNS' = 'STATIC') {
  const files = { 'entry.yaml': entry(resolution), 'routes.yaml': routesTo('s0') };
  const plane = new ControlPlane({}, files, undefined, { PILOT_DEBOUNCE_AFTER: '10ms' });
  await plane.ready();
  const client = new Client(plane.client('ads.listening'), delta);
  const quietMs = 80 * (await slowness());
  client.subscribe(CDS);
  client.subscribe(LDS);
  client.subscribe(RDS, [String(port)]);
  // On a busy machine, late routes could otherwise be counted for the next change.
  await client.roundTripsUntilRoutes(quietMs);
  await client.waitUntilQuiet(quietMs);
  return { plane, client, quietMs };
}

/**
 * Returns the minimum over several changes. On a busy machine, a response may need more than one pause, but it never arrives before the required
 * request.
 */
async function tripsOfChanges(
  changes: number,
  { plane, client, quietMs }: StartedClient,
  textOf: (index: number) => string,
) {
  const trips: number[] = [];
  for (let index = 1; index <= changes; index++) {
    plane.write('routes.yaml', textOf(index));
    trips.push(await client.roundTripsUntilRoutes(quietMs));
    await client.waitUntilQuiet(quietMs);
  }
  return { least: Math.min(...trips), trips };
}

describe.each([
  ['state of the world', false],
  ['delta', true],
])('make-before-break over %s', (_, delta) => {
  test('sends routes without a round trip if there is no new cluster', async () => {
    const { least } = await tripsOfChanges(3, await startClient(delta), (index) => routesTo('s0', `${index + 1}s`));
    expect(least).toBe(0);
  });

  test('sends routes to a new EDS cluster after one or two round trips', async () => {
    const { least, trips } = await tripsOfChanges(3, await startClient(delta), (index) => routesTo(`s${index}`));
    expect(least, String(trips)).toBeGreaterThanOrEqual(1);
    expect(least, String(trips)).toBeLessThanOrEqual(2);
  });

  test('sends routes to a new DNS cluster in one round trip, after its ACK', async () => {
    const { least } = await tripsOfChanges(3, await startClient(delta, 'DNS'), (index) => routesTo(`s${index}`));
    expect(least).toBe(1);
  });
});
