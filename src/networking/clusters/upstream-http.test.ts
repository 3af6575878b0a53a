import { fromBinary } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { givenMesh, givenShape } from '../../../test/fixtures/given-mesh.ts';
import type { Cluster } from '../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import { HttpProtocolOptionsSchema } from '../../gen/envoy/extensions/upstreams/http/v3/http_protocol_options_pb.ts';
import { buildClusters } from './build.ts';

function mesh(protocol: string, http: string): string {
  return `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: web, namespace: shop }
spec:
  hosts: [web.test]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{ number: 80, name: any${protocol && `, protocol: ${protocol}`} }]
  endpoints: [{ address: 10.0.0.1 }]
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: { name: web, namespace: shop }
spec: { host: web.test, trafficPolicy: { connectionPool: { http: ${http} } } }
`;
}

function spoken(name: string, protocol: string, http: string, meshConfig = ''): string {
  const { context } = givenMesh(mesh(protocol, http), meshConfig === '' ? {} : { meshConfig });
  const clusters = buildClusters(givenShape({ namespace: 'shop', ip: '10.0.0.1' }, context), context);
  const { typedExtensionProtocolOptions: options } = clusters.find((one) => one.name === name)!.message as Cluster;
  const [packedOptions] = Object.values(options);
  const version = packedOptions && fromBinary(HttpProtocolOptionsSchema, packedOptions.value).upstreamProtocolOptions;
  if (version?.case === 'explicitHttpConfig') return version.value.protocolConfig.case!;
  return version?.case ?? 'httpProtocolOptions';
}

const [one, two, clients] = ['httpProtocolOptions', 'http2ProtocolOptions', 'useDownstreamProtocolConfig'];

describe('HTTP version of a cluster', () => {
  it.each([
    ['HTTP', '{ h2UpgradePolicy: UPGRADE }', two],
    ['HTTPS', '{ h2UpgradePolicy: UPGRADE }', two],
    ['', '{ h2UpgradePolicy: UPGRADE }', two],
    ['TCP', '{ h2UpgradePolicy: UPGRADE }', one],
    ['', '{ maxRetries: 3 }', clients],
    ['HTTPS', '{ useClientProtocol: true }', clients],
    ['TCP', '{ useClientProtocol: true }', one],
    ['GRPC', '{ h2UpgradePolicy: DO_NOT_UPGRADE }', two],
  ])('a port with protocol "%s" and the rule %s uses %s', (protocol, http, expected) => {
    expect(spoken('outbound|80||web.test', protocol, http)).toBe(expected);
  });

  it.each([
    ['HTTP', '{ maxRetries: 3 }', two],
    ['HTTP', '{ h2UpgradePolicy: DO_NOT_UPGRADE }', one],
    ['HTTPS', '{ maxRetries: 3 }', one],
    ['HTTP', '{ useClientProtocol: true }', clients],
    ['', '{ maxRetries: 3 }', clients],
  ])('a port with protocol "%s", the rule %s and the mesh setting UPGRADE uses %s', (protocol, http, expected) => {
    expect(spoken('outbound|80||web.test', protocol, http, 'h2UpgradePolicy: UPGRADE')).toBe(expected);
  });

  it.each([
    ['HTTP', one],
    ['', clients],
    ['GRPC', two],
  ])(
    'the mesh setting UPGRADE does not affect inbound ports: a port with protocol "%s" uses %s',
    (protocol, expected) => {
      expect(spoken('inbound|80||', protocol, '{ h2UpgradePolicy: UPGRADE }')).toBe(expected);
    },
  );
});
