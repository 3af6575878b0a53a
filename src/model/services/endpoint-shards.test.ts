import { describe, expect, it } from 'vitest';
import { EndpointShards, type PushType } from './endpoint-shards.ts';
import type { Endpoint } from './service.ts';

const web = { hostname: 'web.b', namespace: 'shop' };
const a = { provider: 'Kubernetes', cluster: 'a' };
const b = { provider: 'Kubernetes', cluster: 'b' };

const endpoint = (address: string, overrides: Partial<Endpoint> = {}): Endpoint => ({
  ...{ address, port: 80, servicePortName: 'http', labels: {}, serviceAccount: 'x', network: '', locality: '' },
  ...{ clusterId: 'a', weight: 0, tlsMode: 'disabled', namespace: 'shop', workloadName: '', health: 'healthy' },
  ...overrides,
});

function shardsWith(endpoints: readonly Endpoint[], options = {}): EndpointShards {
  const shards = new EndpointShards(options);
  shards.update(a, web, endpoints);
  return shards;
}

const addressesIn = (shards: EndpointShards): string[] =>
  (shards.index.get('web.b')?.get('shop') ?? []).map(({ address }) => address);

describe('an update of endpoint shards', () => {
  it('requires a full push for a new service', () => {
    expect(new EndpointShards().update(a, web, [endpoint('1.1.1.1')])).toBe<PushType>('full');
  });

  it('requires an incremental push for an empty list, and keeps the key of the service', () => {
    const shards = shardsWith([endpoint('1.1.1.1')]);
    expect(shards.update(a, web, [])).toBe<PushType>('incremental');
    expect(shards.shardsOf(web)?.shards.size).toBe(0);
    expect(shards.index.get('web.b')?.get('shop')).toEqual([]);
  });

  it('requires no push if an empty list stays empty', () => {
    expect(shardsWith([]).update(a, web, [])).toBe<PushType>('none');
  });

  it('requires a full push if the set of service accounts changes', () => {
    const shards = shardsWith([endpoint('1.1.1.1')]);
    expect(shards.update(a, web, [endpoint('1.1.1.1', { serviceAccount: 'y' })])).toBe<PushType>('full');
    expect(shards.update(b, web, [endpoint('2.2.2.2', { serviceAccount: 'y' })])).toBe<PushType>('incremental');
    expect(shards.shardsOf(web)?.serviceAccounts).toEqual(new Set(['y']));
  });

  const secured = endpoint('1.1.1.1', { tlsMode: 'istio', serviceAccount: '' });
  const plain = endpoint('1.1.1.2', { serviceAccount: '' });
  it.each<[string, Endpoint[], Endpoint[]]>([
    ['all endpoints accept mutual TLS again', [secured, plain], [secured]],
    ['a new endpoint does not accept mutual TLS', [secured], [secured, plain]],
  ])('requires a full push if %s, whatever the identities are', (_, previous, next) => {
    expect(shardsWith(previous).update(a, web, next)).toBe<PushType>('full');
  });

  it('requires a full push if new endpoints after an empty list have another TLS mode', () => {
    const shards = shardsWith([secured]);
    shards.update(a, web, []);
    expect(shards.update(a, web, [plain])).toBe<PushType>('full');
    shards.update(a, web, []);
    expect(shards.update(a, web, [plain])).toBe<PushType>('incremental');
  });

  it('requires a full push if the remaining endpoints of a registry have another TLS mode', () => {
    const shards = shardsWith([plain]);
    shards.update(b, web, [secured]);
    expect(shards.update(a, web, [])).toBe<PushType>('full');
  });

  it('requires no push if nothing differs, regardless of order', () => {
    const shards = shardsWith([endpoint('1.1.1.1'), endpoint('1.1.1.2')]);
    expect(shards.update(a, web, [endpoint('1.1.1.2'), endpoint('1.1.1.1')])).toBe<PushType>('none');
  });

  it('requires no push for a new unhealthy endpoint unless unhealthy endpoints are sent', () => {
    const next = [endpoint('1.1.1.1'), endpoint('1.1.1.2', { health: 'unhealthy' })];
    expect(shardsWith([endpoint('1.1.1.1')]).update(a, web, next)).toBe<PushType>('none');
    expect(shardsWith([endpoint('1.1.1.1')], { sendUnhealthy: true }).update(a, web, next)).toBe<PushType>(
      'incremental',
    );
  });

  it.each<[string, Endpoint[]]>([
    ['is added', [endpoint('1.1.1.1'), endpoint('1.1.1.2')]],
    ['is removed', [endpoint('1.1.1.3')]],
    ['becomes unhealthy', [endpoint('1.1.1.1', { health: 'unhealthy' })]],
    ['has another weight', [endpoint('1.1.1.1', { weight: 5 })]],
    ['has other labels', [endpoint('1.1.1.1', { labels: { v: '2' } })]],
  ])('requires an incremental push if an endpoint %s', (_, next) => {
    expect(shardsWith([endpoint('1.1.1.1')]).update(a, web, next)).toBe<PushType>('incremental');
  });

  it('requires an incremental push if one of two workloads at the same address is removed', () => {
    const bothWorkloads = [endpoint('1.1.1.1', { workloadName: 'a' }), endpoint('1.1.1.1', { workloadName: 'b' })];
    expect(shardsWith(bothWorkloads).update(a, web, bothWorkloads.slice(1))).toBe<PushType>('incremental');
  });

  it('drops the shard of a removed service, and the service together with its last shard', () => {
    const shards = shardsWith([endpoint('1.1.1.1')]);
    shards.update(b, web, [endpoint('2.2.2.2')]);
    shards.deleteService(a, web);
    expect(addressesIn(shards)).toEqual(['2.2.2.2']);
    shards.deleteService(b, web);
    expect([shards.shardsOf(web), shards.index.size, shards.count]).toEqual([undefined, 0, 0]);
  });

  it('lists endpoints by provider, then by cluster, regardless of arrival order', () => {
    const shards = new EndpointShards();
    const external = { provider: 'External', cluster: 'z' };
    for (const [key, address] of [
      [b, '3.3.3.3'],
      [a, '2.2.2.2'],
      [external, '1.1.1.1'],
    ] as const) {
      shards.update(key, web, [endpoint(address)]);
    }
    expect(addressesIn(shards)).toEqual(['1.1.1.1', '2.2.2.2', '3.3.3.3']);
    expect([...shards.shardsOf(web)!.shards.keys()]).toEqual(['External/z', 'Kubernetes/a', 'Kubernetes/b']);
  });

  it('drops all endpoints of a removed registry', () => {
    const shards = shardsWith([endpoint('1.1.1.1')]);
    shards.update(b, web, [endpoint('2.2.2.2')]);
    shards.update(a, { hostname: 'c.d', namespace: 'shop' }, [endpoint('4.4.4.4')]);
    expect(shards.removeShard(a)).toHaveLength(2);
    expect([addressesIn(shards), shards.index.has('c.d')]).toEqual([['2.2.2.2'], false]);
  });

  it('keeps the selected services of a pruned registry', () => {
    const shards = shardsWith([endpoint('1.1.1.1')]);
    shards.update(a, { hostname: 'c.d', namespace: 'shop' }, [endpoint('4.4.4.4')]);
    expect(shards.pruneShard(a, ({ hostname }) => hostname === 'web.b')).toEqual([
      { hostname: 'c.d', namespace: 'shop' },
    ]);
    expect(addressesIn(shards)).toEqual(['1.1.1.1']);
  });

  it('counts endpoints, and does not modify earlier snapshots', () => {
    const shards = shardsWith([endpoint('1.1.1.1')]);
    const snapshot = shards.index;
    shards.update(a, web, [endpoint('1.1.1.1'), endpoint('1.1.1.2')]);
    expect([snapshot.get('web.b')?.get('shop')?.length, shards.count]).toEqual([1, 2]);
  });
});
