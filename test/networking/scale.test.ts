import { describe, expect, it } from 'vitest';
import type { ProxyShape } from '../../src/model/proxy/proxy-shape.ts';
import type { PushContext } from '../../src/model/push-context/push-context.ts';
import { buildClusters, buildEndpoints, buildListeners, buildRoutes } from '../../src/networking/index.ts';
import { outboundClusterName } from '../../src/networking/traffic/resource-names.ts';
import { givenMesh, givenShape } from '../fixtures/given-mesh.ts';
import { cpuMs } from '../harness/cpu-time.ts';

const serviceCount = 1000;
const endpointsEach = 10;
/** Limit for generating all resources on one core. Ten times the usual duration, for slow machines. */
const limitMs = 1_000;

describe(`a generator for one sidecar in a mesh of ${serviceCount} services with ${endpointsEach} endpoints each`, () => {
  const warmUp = bigMesh();
  const mesh = bigMesh();

  it.each([
    ['clusters', ({ shape, push }: Mesh) => buildClusters(shape, push), serviceCount * 2],
    ['endpoints', ({ shape, push }: Mesh) => buildEndpoints(shape, push, clusterNames(push)), serviceCount],
    ['listeners', ({ shape, push }: Mesh) => buildListeners(shape, push), serviceCount],
    ['routes', ({ shape, push }: Mesh) => buildRoutes(shape, push, ['80']), 1],
  ] as const)('builds %s in less than 1 s', (type, build, minResources) => {
    build(warmUp);
    let resources: ReturnType<typeof build> = [];
    const tookMs = cpuMs(() => {
      resources = build(mesh);
    });
    console.log(`${resources.length} ${type} in ${tookMs.toFixed(0)} ms`);
    expect(resources.length).toBeGreaterThanOrEqual(minResources);
    expect(tookMs).toBeLessThan(limitMs);
  });
});

interface Mesh {
  readonly shape: ProxyShape;
  readonly push: PushContext;
}

function clusterNames(push: PushContext): string[] {
  return push.services.map((service) => outboundClusterName(80, '', service.hostname));
}

/** Each service has an HTTP and a TCP port. Every second one has a VirtualService and a DestinationRule. */
function bigMesh(): Mesh {
  const documents = Array.from({ length: serviceCount }, (_, index) => serviceDocuments(index)).flat();
  const { context } = givenMesh(documents.join('\n---\n'));
  return { push: context, shape: givenShape({ ip: '10.255.0.1' }, context) };
}

function serviceDocuments(index: number): string[] {
  const high = index >> 8;
  const lowByte = index & 255;
  const endpoints = Array.from(
    { length: endpointsEach },
    (_, endpoint) => `{ address: 10.${100 + endpoint}.${high}.${lowByte}, labels: { version: v${endpoint % 2} } }`,
  );
  const head = (kind: string): string =>
    `apiVersion: networking.istio.io/v1\nkind: ${kind}\nmetadata: { name: s${index}, namespace: default }\nspec:`;
  const host = `s${index}.internal`;
  const service = `${head('ServiceEntry')}
  hosts: [${host}]
  addresses: [10.200.${high}.${lowByte}]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{ number: 80, name: http, protocol: HTTP }, { number: 9000, name: tcp, protocol: TCP }]
  endpoints: [${endpoints.join(', ')}]`;
  if (index % 2 === 1) return [service];
  const route = `${head('VirtualService')}
  hosts: [${host}]
  http: [{ route: [{ destination: { host: ${host}, subset: v0 }, weight: 90 }, { destination: { host: ${host}, subset: v1 }, weight: 10 }] }]`;
  const rule = `${head('DestinationRule')}
  host: ${host}
  subsets: [{ name: v0, labels: { version: v0 } }, { name: v1, labels: { version: v1 } }]`;
  return [service, route, rule];
}
