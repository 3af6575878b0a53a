import { setImmediate as nextTurn } from 'node:timers/promises';
import { fromBinary } from '@bufbuild/protobuf';
import { afterEach, describe, expect, test } from 'vitest';
import { typeUrls } from '../../../../test/ads-client.ts';
import { ControlPlane, sidecar, stopControlPlanes } from '../../../../test/harness/control-plane.ts';
import { eventually } from '../../../../test/harness/eventually.ts';
import { ClusterSchema } from '../../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import { ServiceComputations } from './service-computations.ts';

describe('ServiceComputations.settled', () => {
  test('resolves immediately if no computation is running', async () => {
    await new ServiceComputations().waitUntilIdle();
  });

  test('resolves after the running computation and the next one, even if both fail', async () => {
    const computations = new ServiceComputations();
    const [first, secondGate, third] = [
      Promise.withResolvers<void>(),
      Promise.withResolvers<void>(),
      Promise.withResolvers<void>(),
    ];
    const startComputation = ({ promise }: PromiseWithResolvers<void>): void =>
      void computations.run(promise).catch(() => {});
    void first.promise.then(() => startComputation(secondGate)).catch(() => {});
    void secondGate.promise.catch(() => startComputation(third));
    startComputation(first);
    let isSettled = false;
    const settling = computations.waitUntilIdle().then(() => (isSettled = true));
    first.resolve();
    await nextTurn();
    await nextTurn();
    expect(isSettled).toBe(false);
    secondGate.reject(new Error('cannot be computed'));
    await settling;
  });
});

describe('a configuration file with a service and its routes', () => {
  afterEach(stopControlPlanes);

  const serviceEntries = (count: number): string =>
    Array.from(
      { length: count },
      (_, index) => `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: many-${index}, namespace: many}
spec:
  hosts: [many-${index}.shop.test]
  exportTo: [.]
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
`,
    ).join('---\n');

  const movedEntry = (generation: number): string => `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: target, namespace: shop}
spec:
  hosts: [target-${generation}.shop.test]
  resolution: STATIC
  ports: [{number: 8080, name: http, protocol: HTTP}]
  endpoints: [{address: 10.1.1.1}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: front, namespace: shop}
spec:
  hosts: [front.shop.test]
  http: [{route: [{destination: {host: target-${generation}.shop.test}}]}]
`;

  const front = `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: front, namespace: shop}
spec:
  hosts: [front.shop.test]
  resolution: STATIC
  ports: [{number: 8080, name: http, protocol: HTTP}]
`;

  test('results in one push context, even if the computation of services is slow', async () => {
    const files = { 'many.yaml': serviceEntries(3_000), 'front.yaml': front, 'moved.yaml': movedEntry(0) };
    const plane = new ControlPlane({}, files, undefined, {
      PILOT_DEBOUNCE_AFTER: '1ms',
      PILOT_XDS_MAKE_BEFORE_BREAK_TIMEOUT: '0',
    });
    await plane.ready();
    const stream = plane.client('ads.listening').sotw();
    const clusters = new Set<string>();
    const unknownClusters: string[] = [];
    let [seenVersion, routeResponses] = ['', 0];
    stream.onResponse = ({ typeUrl, versionInfo, nonce, resources }) => {
      const names = typeUrl === typeUrls.RDS ? ['8080'] : [];
      stream.send({ typeUrl, versionInfo, responseNonce: nonce, resourceNames: names });
      if (typeUrl === typeUrls.RDS) routeResponses++;
      for (const { value } of resources) {
        if (typeUrl === typeUrls.CDS) clusters.add(fromBinary(ClusterSchema, value).name);
        seenVersion =
          /outbound\|8080\|\|target-\d+\.shop\.test/.exec(Buffer.from(value).toString('latin1'))?.[0] ?? seenVersion;
        if (typeUrl === typeUrls.RDS && !clusters.has(seenVersion)) unknownClusters.push(seenVersion);
      }
    };
    const node = { ...sidecar, metadata: { ...sidecar.metadata, INTERCEPTION_MODE: 'REDIRECT' } };
    stream.send({ node, typeUrl: typeUrls.CDS });
    stream.send({ typeUrl: typeUrls.RDS, resourceNames: ['8080'] });
    // Make-before-break delays responses that are newer than the clusters.
    await eventually('the first routes are served', () => routeResponses > 0);
    for (let generation = 1; generation <= 5; generation++) {
      plane.write('moved.yaml', movedEntry(generation));
      await eventually(`routes lead to generation ${generation}`, () => seenVersion.includes(`target-${generation}.`));
      // The previous files are read completely before this one.
      plane.write('after.yaml', front.replaceAll('front', `after-${generation}`));
      const addedCluster = `outbound|8080||after-${generation}.shop.test`;
      await eventually('the next file is served', () => clusters.has(addedCluster));
    }
    expect(unknownClusters).toEqual([]);
  });
});
