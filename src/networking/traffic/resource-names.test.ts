import { describe, expect, it } from 'vitest';
import { configPath, outboundClusterName, parseOutboundClusterName, sniName } from './resource-names.ts';

describe('cluster names', () => {
  it('cluster names are parsed into their parts, in both forms', () => {
    const host = 'reviews.shop.svc.cluster.local';
    expect(parseOutboundClusterName(outboundClusterName(80, 'v1', host))).toEqual({
      port: 80,
      subset: 'v1',
      host,
      sni: false,
    });
    expect(parseOutboundClusterName(sniName(80, '', host))).toEqual({ port: 80, subset: '', host, sni: true });
  });

  it.each(['inbound|80||', 'BlackHoleCluster', 'outbound|80|v1', 'outbound|http||a', 'outbound|80||', ''])(
    '%j is not an outbound cluster name',
    (name) => {
      expect(parseOutboundClusterName(name)).toBeUndefined();
    },
  );
});

it("an object's API path is its origin in metadata", () => {
  expect(configPath({ kind: 'DestinationRule', namespace: 'shop', name: 'reviews' })).toBe(
    '/apis/networking.istio.io/v1/namespaces/shop/destination-rule/reviews',
  );
});
