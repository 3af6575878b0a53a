import { expect, it } from 'vitest';
import type { Network } from '../mesh/mesh-networks.ts';
import { gatewaysOfNetworks } from './network-gateways.ts';
import type { Service } from './service.ts';

const hostname = 'istio-ingressgateway.istio-system.svc.cluster.local';
/** A service that was merged from two clusters. */
const service = {
  ...{ hostname, labels: {} },
  attributes: { externalAddresses: { c1: ['1.1.1.1'], c2: ['2.2.2.2'] } },
} as unknown as Service;
const gateways = [{ registryServiceName: hostname, port: 15443 }];
const ways = (networks: Readonly<Record<string, Network>>): string[] =>
  gatewaysOfNetworks({ networks }, (host) => (host === hostname ? [service] : [])).map(
    ({ network, cluster, address }) => `${network} ${cluster} ${address}`,
  );

it('a merged service is a gateway only for the networks of its clusters', () => {
  expect(
    ways({
      n1: { endpoints: [{ fromRegistry: 'c1' }], gateways },
      n2: { endpoints: [{ fromRegistry: 'c2' }], gateways },
    }),
  ).toEqual(['n1 c1 1.1.1.1', 'n2 c2 2.2.2.2']);
});

it('a network without clusters is reached through all gateways', () => {
  expect(ways({ n: { endpoints: [{ fromCidr: '10.0.0.0/8' }], gateways } })).toEqual(['n c1 1.1.1.1', 'n c2 2.2.2.2']);
});
