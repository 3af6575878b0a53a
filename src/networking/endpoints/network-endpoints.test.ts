import { describe, expect, it } from 'vitest';
import { type NetworkGateway, NetworkGateways } from '../../model/services/network-gateways.ts';
import type { Endpoint } from '../../model/services/service.ts';
import { type NetworkView, reachableEndpoints } from './network-endpoints.ts';

const endpoint = (address: string, overrides: Partial<Endpoint> = {}): Endpoint => ({
  ...{ address, port: 8080, servicePortName: 'http', labels: {}, serviceAccount: '', network: 'east', locality: '' },
  ...{ clusterId: 'c1', weight: 0, tlsMode: 'istio', namespace: 'shop', workloadName: 'web', health: 'healthy' },
  ...overrides,
});

const gateway = (address: string, overrides: Partial<NetworkGateway> = {}): NetworkGateway => ({
  ...{ network: 'west', cluster: '', address, port: 15443 },
  ...overrides,
});

function seenAddresses(
  endpoints: readonly Endpoint[],
  gateways: readonly NetworkGateway[],
  view: Partial<NetworkView> = {},
): string[] {
  const from = {
    network: 'east',
    clusterId: 'c1',
    isClusterLocal: false,
    mutualTls: true,
    gateways: new NetworkGateways(gateways),
    ...view,
  };
  return reachableEndpoints(endpoints, from).map(({ address, port, weight }) => `${address}:${port} ${weight}`);
}

const west = (address: string, overrides: Partial<Endpoint> = {}): Endpoint =>
  endpoint(address, { network: 'west', clusterId: 'c2', ...overrides });

describe('endpoints of other networks', () => {
  it('a gateway has the total weight of the endpoints behind it', () => {
    expect(
      seenAddresses([endpoint('10.0.0.1'), west('10.9.0.1', { weight: 2 }), west('10.9.0.2')], [gateway('7.0.0.1')]),
    ).toEqual(['10.0.0.1:8080 0', '7.0.0.1:15443 3']);
  });

  it('several gateways share the weight in proportion to directly reachable endpoints', () => {
    expect(
      seenAddresses(
        [endpoint('10.0.0.1'), west('10.9.0.1'), west('10.9.0.2')],
        [gateway('7.0.0.1'), gateway('7.0.0.2')],
      ),
    ).toEqual(['10.0.0.1:8080 2', '7.0.0.1:15443 2', '7.0.0.2:15443 2']);
  });

  it('endpoints use a gateway in their own cluster if one exists', () => {
    const gateways = [gateway('7.0.0.1', { cluster: 'c2' }), gateway('7.0.0.2', { cluster: 'c3' })];
    expect(seenAddresses([west('10.9.0.1')], gateways)).toEqual(['7.0.0.1:15443 1']);
    expect(seenAddresses([west('10.9.0.1', { clusterId: 'c4' })], gateways)).toHaveLength(2);
  });

  it('endpoints without mutual TLS are omitted, because gateways accept only mutual TLS', () => {
    expect(seenAddresses([west('10.9.0.1', { tlsMode: 'disabled' })], [gateway('7.0.0.1')])).toEqual([]);
  });

  it('endpoints are omitted if clients do not use mutual TLS', () => {
    const farEndpoints = [endpoint('10.0.0.1'), west('10.9.0.1'), west('10.8.0.1', { network: 'north' })];
    expect(seenAddresses(farEndpoints, [gateway('7.0.0.1')], { mutualTls: false })).toEqual([
      '10.0.0.1:8080 0',
      '10.8.0.1:8080 0',
    ]);
  });

  it('a gateway has only the weight of healthy endpoints, because it cannot report endpoint health', () => {
    const endpoints = [
      west('10.9.0.1'),
      west('10.9.0.2', { health: 'unhealthy' }),
      west('10.9.0.3', { health: 'draining' }),
    ];
    expect(seenAddresses(endpoints, [gateway('7.0.0.1')])).toEqual(['7.0.0.1:15443 1']);
    expect(seenAddresses(endpoints.slice(1), [gateway('7.0.0.1')])).toEqual([]);
  });

  it('endpoints are reached directly if no gateway is known or one side has no network', () => {
    const farEndpoints = [west('10.9.0.1'), endpoint('10.0.0.1', { network: '' })];
    expect(seenAddresses(farEndpoints, [gateway('7.0.0.1', { network: 'north' })])).toEqual([
      '10.9.0.1:8080 0',
      '10.0.0.1:8080 0',
    ]);
    expect(seenAddresses(farEndpoints, [gateway('7.0.0.1')], { network: '' })).toEqual([
      '10.9.0.1:8080 0',
      '10.0.0.1:8080 0',
    ]);
  });

  it('endpoints of several localities behind the same gateway keep their localities', () => {
    const twoEndpoints = [west('10.9.0.1', { locality: 'r1' }), west('10.9.0.2', { locality: 'r2' })];
    const from = {
      network: 'east',
      clusterId: '',
      isClusterLocal: false,
      mutualTls: true,
      gateways: new NetworkGateways([gateway('7.0.0.1')]),
    };
    expect(reachableEndpoints(twoEndpoints, from).map(({ locality }) => locality)).toEqual(['r1', 'r2']);
  });
});

describe('endpoints of a cluster-local host', () => {
  it("a cluster-local host has only endpoints in the client's cluster", () => {
    const twoEndpoints = [endpoint('10.0.0.1'), endpoint('10.0.0.2', { clusterId: 'c2' })];
    expect(seenAddresses(twoEndpoints, [], { isClusterLocal: true })).toEqual(['10.0.0.1:8080 0']);
    expect(seenAddresses(twoEndpoints, [], { isClusterLocal: true, clusterId: '' })).toHaveLength(2);
  });
});
