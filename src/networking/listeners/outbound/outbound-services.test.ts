import { describe, expect, it } from 'vitest';
import { GivenWorld, givenObject } from '../../../../test/fixtures/given-world.ts';
import type { Config } from '../../../model/config/config.ts';
import type { Service } from '../../../model/services/service.ts';
import { buildOutboundPlan } from './outbound-services.ts';

const services = 300;

function entry(index: number, port: number, protocol: string): Config {
  return givenObject(
    'ServiceEntry',
    `ns-${index % 10}`,
    `se-${index}`,
    {
      hosts: [`svc-${index}.test`],
      addresses: [`10.250.${index >> 8}.${index & 255}`],
      location: 'MESH_INTERNAL',
      resolution: 'STATIC',
      ports: [{ number: port, name: 'p', protocol }],
      endpoints: [{ address: `10.1.${index >> 8}.${index & 255}` }],
    },
    index,
  );
}

function planIn(world: GivenWorld, namespace: string) {
  const node = world.connect(`10.9.0.${namespace.length}`, { namespace });
  return buildOutboundPlan(node.shape, world.state.context!).listeners;
}

/** Counts accesses to the ports of services. */
function countingReads(all: readonly Service[]): () => number {
  let reads = 0;
  for (const service of all) {
    const { ports } = service;
    Object.defineProperty(service, 'ports', {
      get: () => {
        reads++;
        return ports;
      },
    });
  }
  return () => reads;
}

describe('services on HTTP-only ports', () => {
  it('the services of an HTTP-only port are added once for all namespaces that can see them', () => {
    const world = new GivenWorld(Array.from({ length: services }, (_, index) => entry(index, 8080, 'HTTP')));
    const reads = countingReads(world.state.context!.services);
    planIn(world, 'ns-1');
    const first = reads();
    expect(first).toBeGreaterThanOrEqual(services);
    expect(planIn(world, 'ns-22')).toHaveLength(1);
    expect(reads() - first).toBeLessThan(services / 10);
  });

  it('the services of an HTTP-only port are sorted by age', () => {
    const world = new GivenWorld([
      entry(1, 90, 'TCP'),
      entry(2, 80, 'HTTP'),
      entry(3, 70, 'HTTP'),
      entry(4, 80, 'GRPC-Web'),
      entry(5, 70, 'unsupported'),
      entry(6, 60, 'HTTP2'),
    ]);
    const listeners = planIn(world, 'ns-1').map(({ bind, port, http, tcp, dependsOn }) => ({
      place: `${bind}:${port}`,
      http: http && `${http.routeName}${http.grpcWeb ? ' with gRPC-Web' : ''}`,
      chains: tcp.length,
      of: dependsOn.map(({ name }) => name).join(),
    }));
    expect(listeners).toEqual([
      { place: '10.250.0.1:90', http: undefined, chains: 1, of: 'svc-1.test' },
      { place: '0.0.0.0:80', http: '80 with gRPC-Web', chains: 0, of: 'svc-2.test,svc-4.test' },
      { place: '0.0.0.0:70', http: '70', chains: 0, of: 'svc-3.test' },
      { place: '10.250.0.5:70', http: 'svc-5.test:70', chains: 1, of: 'svc-5.test,svc-5.test' },
      { place: '0.0.0.0:60', http: '60', chains: 0, of: 'svc-6.test' },
    ]);
  });
});
