import { create } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import { AddressSchema } from '../../gen/envoy/config/core/v3/address_pb.ts';
import { LbEndpointSchema } from '../../gen/envoy/config/endpoint/v3/endpoint_components_pb.ts';
import type { Endpoint } from '../../model/services/service.ts';
import { loadAssignment } from './assignment.ts';

const endpoint: Endpoint = {
  ...{ address: '10.0.0.1', port: 8080, servicePortName: 'http', health: 'healthy', weight: 3, namespace: 'shop' },
  ...{ serviceAccount: '', network: '', locality: '', clusterId: 'c1', workloadName: 'web', labels: { version: 'v2' } },
  tlsMode: 'istio',
};
const order = {
  ...{ proxyLocality: '', proxyLabels: {}, proxyNetwork: '', proxyNode: '' },
  ...{ setting: undefined, outlierDetection: false },
};
const messageOf = (one: Endpoint) => loadAssignment('web', [one], order).endpoints[0]!.lbEndpoints[0]!;

it('an endpoint that is built as an object literal equals the message from protobuf-es', () => {
  for (const one of [endpoint, { ...endpoint, tlsMode: 'disabled' as const }]) {
    const message = messageOf(one);
    const { healthStatus, metadata, loadBalancingWeight = 0 } = message;
    const socketAddress = { address: one.address, portSpecifier: { case: 'portValue', value: one.port } } as const;
    const address = create(AddressSchema, { address: { case: 'socketAddress', value: socketAddress } });
    expect(message).toStrictEqual(
      create(LbEndpointSchema, {
        hostIdentifier: { case: 'endpoint', value: { address } },
        ...{ healthStatus, metadata: { filterMetadata: metadata!.filterMetadata }, loadBalancingWeight },
      }),
    );
  }
});

it('an endpoint contains metadata of its workload, and about mutual TLS if its proxy accepts it', () => {
  expect(messageOf(endpoint).metadata!.filterMetadata).toEqual({
    istio: { workload: 'web;shop;web;v2;c1' },
    'envoy.transport_socket_match': { tlsMode: 'istio' },
  });
  expect(Object.keys(messageOf({ ...endpoint, tlsMode: 'disabled' }).metadata!.filterMetadata)).toEqual(['istio']);
});
