import { describe, expect, it } from 'vitest';
import { type NetworkGateway, NetworkGateways } from '../../model/services/network-gateways.ts';
import type { Endpoint } from '../../model/services/service.ts';
import { type NetworkView, reachableEndpoints } from './network-endpoints.ts';

const endpoint = (address: string, about: Partial<Endpoint> = {}): Endpoint => ({
  ...{ address, port: 8080, servicePortName: 'http', labels: {}, serviceAccount: '', network: 'east', locality: '' },
  ...{ clusterId: 'c1', weight: 0, tlsMode: 'istio', namespace: 'shop', workloadName: 'web', health: 'healthy' },
  ...about,
});

const gateway = (address: string, about: Partial<NetworkGateway> = {}): NetworkGateway => ({
  ...{ network: 'west', cluster: '', address, port: 15443 },
  ...about,
});

function seen(
  endpoints: readonly Endpoint[],
  gateways: readonly NetworkGateway[],
  view: Partial<NetworkView> = {},
): string[] {
  const from = {
    network: 'east',
    clusterId: 'c1',
    clusterLocal: false,
    mutualTls: true,
    gateways: new NetworkGateways(gateways),
    ...view,
  };
  return reachableEndpoints(endpoints, from).map(({ address, port, weight }) => `${address}:${port} ${weight}`);
}

const west = (address: string, about: Partial<Endpoint> = {}): Endpoint =>
  endpoint(address, { network: 'west', clusterId: 'c2', ...about });

describe('endpoints of other networks', () => {
  it('a gateway has the total weight of the endpoints behind it', () => {
    expect(
      seen([endpoint('10.0.0.1'), west('10.9.0.1', { weight: 2 }), west('10.9.0.2')], [gateway('7.0.0.1')]),
    ).toEqual(['10.0.0.1:8080 0', '7.0.0.1:15443 3']);
  });

  it('several gateways share the weight in proportion to directly reachable endpoints', () => {
    expect(
      seen([endpoint('10.0.0.1'), west('10.9.0.1'), west('10.9.0.2')], [gateway('7.0.0.1'), gateway('7.0.0.2')]),
    ).toEqual(['10.0.0.1:8080 2', '7.0.0.1:15443 2', '7.0.0.2:15443 2']);
  });

  it('endpoints use a gateway in their own cluster if one exists', () => {
    const gateways = [gateway('7.0.0.1', { cluster: 'c2' }), gateway('7.0.0.2', { cluster: 'c3' })];
    expect(seen([west('10.9.0.1')], gateways)).toEqual(['7.0.0.1:15443 1']);
    expect(seen([west('10.9.0.1', { clusterId: 'c4' })], gateways)).toHaveLength(2);
  });

  it('endpoints without mutual TLS are omitted, because gateways accept only mutual TLS', () => {
    expect(seen([west('10.9.0.1', { tlsMode: 'disabled' })], [gateway('7.0.0.1')])).toEqual([]);
  });

  it('endpoints are omitted if clients do not use mutual TLS', () => {
    const far = [endpoint('10.0.0.1'), west('10.9.0.1'), west('10.8.0.1', { network: 'north' })];
    expect(seen(far, [gateway('7.0.0.1')], { mutualTls: false })).toEqual(['10.0.0.1:8080 0', '10.8.0.1:8080 0']);
  });

  it('a gateway has only the weight of healthy endpoints, because it cannot report endpoint health', () => {
    const some = [
      west('10.9.0.1'),
      west('10.9.0.2', { health: 'unhealthy' }),
      west('10.9.0.3', { health: 'draining' }),
    ];
    expect(seen(some, [gateway('7.0.0.1')])).toEqual(['7.0.0.1:15443 1']);
    expect(seen(some.slice(1), [gateway('7.0.0.1')])).toEqual([]);
  });

  it('endpoints are reached directly if no gateway is known or one side has no network', () => {
    const far = [west('10.9.0.1'), endpoint('10.0.0.1', { network: '' })];
    expect(seen(far, [gateway('7.0.0.1', { network: 'north' })])).toEqual(['10.9.0.1:8080 0', '10.0.0.1:8080 0']);
    expect(seen(far, [gateway('7.0.0.1')], { network: '' })).toEqual(['10.9.0.1:8080 0', '10.0.0.1:8080 0']);
  });

  it('endpoints of several localities behind the same gateway keep their localities', () => {
    const two = [west('10.9.0.1', { locality: 'r1' }), west('10.9.0.2', { locality: 'r2' })];
    const from = {
      network: 'east',
      clusterId: '',
      clusterLocal: false,
      mutualTls: true,
      gateways: new NetworkGateways([gateway('7.0.0.1')]),
    };
    expect(reachableEndpoints(two, from).map(({ locality }) => locality)).toEqual(['r1', 'r2']);
  });
});

describe('endpoints of a cluster-local host', () => {
  it("a cluster-local host has only endpoints in the client's cluster", () => {
    const both = [endpoint('10.0.0.1'), endpoint('10.0.0.2', { clusterId: 'c2' })];
    expect(seen(both, [], { clusterLocal: true })).toEqual(['10.0.0.1:8080 0']);
    expect(seen(both, [], { clusterLocal: true, clusterId: '' })).toHaveLength(2);
  });
});
