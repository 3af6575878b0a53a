import { describe, expect, it } from 'vitest';
import { GivenWorld, givenObject } from '../../../test/fixtures/given-world.ts';
import type { Config } from '../../model/config/config.ts';
import { clusterType, endpointType, listenerType, routeType } from '../../networking/index.ts';
import type { MeshNode } from './mesh-resources.ts';

const host = 'near.a.svc.cluster.local';
const watched = [clusterType, endpointType, listenerType, routeType];

const ports = [{ name: 'p', port: 80, protocol: 'TCP' }];
const service = givenObject('Service', 'a', 'near', {
  spec: { type: 'ClusterIP', clusterIP: '10.6.0.1', clusterIPs: [], ports, externalIPs: [] },
  status: { loadBalancer: { ingress: [] } },
});

function slice(isReady: boolean): Config {
  const conditions = { ready: isReady, serving: isReady, terminating: !isReady };
  const spec = { addressType: 'IPv4', ports, endpoints: [{ addresses: ['10.1.0.1'], conditions }] };
  return { ...givenObject('EndpointSlice', 'a', 'near-1', spec), labels: { 'kubernetes.io/service-name': 'near' } };
}

/** Another service with the same host and port name. */
function entry(resolution: string): Config {
  const spec = { hosts: [host], ports: [{ number: 443, name: 'p', protocol: 'HTTP' }], location: 'MESH_INTERNAL' };
  return givenObject('ServiceEntry', 'a', 'other', { ...spec, resolution, addresses: [], endpoints: [] });
}

function clustersOf(node: MeshNode): unknown {
  return [...node.get(clusterType, '*')!.resources].map(([name, { version }]) => [name, version]);
}

/** Types that are pushed when a Kubernetes service loses its only endpoint while a ServiceEntry has the same host. */
function typesPushedWithEntry(resolution: string) {
  const other = entry(resolution);
  const world = new GivenWorld([service, slice(true), other]);
  const node = world.connect('10.9.0.2');
  const previous = clustersOf(node);
  const types = node.typesToPush(world.put(slice(false)), watched);
  const rebuilt = new GivenWorld([service, slice(false), other]).connect('10.9.0.2');
  return { types, before: previous, now: clustersOf(node), rebuilt: clustersOf(rebuilt) };
}

describe('endpoints of a host in two registries', () => {
  it('are pushed with clusters if one service uses DNS, because its clusters contain the endpoints', () => {
    const { types, before: previous, now, rebuilt } = typesPushedWithEntry('DNS');
    expect(types).toContain(clusterType);
    expect(now).toEqual(rebuilt);
    expect(now).not.toEqual(previous);
  });

  it('are pushed without clusters if both services have static endpoints', () => {
    const { types, before: previous, now, rebuilt } = typesPushedWithEntry('STATIC');
    expect(types).toEqual([endpointType]);
    expect([now, rebuilt]).toEqual([previous, previous]);
  });
});
