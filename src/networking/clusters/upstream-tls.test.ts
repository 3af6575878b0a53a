import { fromBinary } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { givenMesh, givenShape } from '../../../test/fixtures/given-mesh.ts';
import type { Cluster } from '../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import type { TransportSocket } from '../../gen/envoy/config/core/v3/base_pb.ts';
import {
  type UpstreamTlsContext,
  UpstreamTlsContextSchema,
} from '../../gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.ts';
import { buildClusters } from '../index.ts';

const service = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: web, namespace: shop }
spec:
  hosts: [web.test]
  addresses: [10.1.0.1]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{ number: 80, name: http, protocol: HTTP }]
  endpoints: [{ address: 10.0.0.9, serviceAccount: web }]
---`;

function rule(trafficPolicy: string): string {
  return `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: { name: web, namespace: shop }
spec: { host: web.test, trafficPolicy: ${trafficPolicy} }
---`;
}

const off = `
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: { name: off, namespace: shop }
spec: { mtls: { mode: DISABLE } }
---`;

function cluster(yaml: string, { agent = true, meshConfig = '' } = {}): Cluster {
  const { context } = givenMesh(yaml, meshConfig === '' ? {} : { meshConfig });
  const shape = givenShape({ namespace: 'shop', metadata: agent ? { ISTIO_VERSION: '1.30.0' } : {} }, context);
  const resources = buildClusters(shape, context);
  return resources.find(({ name }) => name === 'outbound|80||web.test')!.message as Cluster;
}

function tlsOf(socket: TransportSocket | undefined): UpstreamTlsContext {
  const { configType } = socket!;
  if (configType.case !== 'typedConfig') throw new Error('no TLS');
  return fromBinary(UpstreamTlsContextSchema, configType.value.value);
}

function namesOf(socket: TransportSocket | undefined): unknown[] {
  const type = tlsOf(socket).commonTlsContext!.validationContextType;
  const context = type.case === 'combinedValidationContext' ? type.value.defaultValidationContext! : undefined;
  return context!.matchTypedSubjectAltNames.map(({ matcher }) => matcher!.matchPattern.value);
}

describe('server names in the mesh', () => {
  const renamedDomain = 'trustDomain: new.test\ntrustDomainAliases: [old.test]';
  const under = (account: string, ...domains: string[]): string[] => domains.map((one) => `spiffe://${one}${account}`);

  it('a server is accepted with a certificate of a former trust domain', () => {
    const { transportSocketMatches: matches } = cluster(service, { meshConfig: renamedDomain });
    expect(namesOf(matches[0]!.transportSocket)).toEqual(under('/ns/shop/sa/web', 'new.test', 'old.test'));
    const target = cluster(service + rule('{ tls: { mode: ISTIO_MUTUAL } }'), { meshConfig: renamedDomain });
    expect(namesOf(target.transportSocket)).toEqual(under('/ns/shop/sa/web', 'new.test', 'old.test'));
  });

  it('a server must have one of the names in the object if there are any', () => {
    const serviceWithSans = 'resolution: STATIC\n  subjectAltNames: [spiffe://other.test/ns/a/sa/b, web.test]';
    const { transportSocketMatches: matches } = cluster(service.replace('resolution: STATIC', serviceWithSans), {
      meshConfig: renamedDomain,
    });
    expect(namesOf(matches[0]!.transportSocket)).toEqual([
      ...under('/ns/shop/sa/web', 'new.test', 'old.test'),
      ...under('/ns/a/sa/b', 'other.test'),
      'web.test',
    ]);
    const ruled = rule('{ tls: { mode: ISTIO_MUTUAL, subjectAltNames: ["spiffe://new.test/ns/shop/sa/web"] } }');
    expect(namesOf(cluster(service + ruled, { meshConfig: renamedDomain }).transportSocket)).toEqual(
      under('/ns/shop/sa/web', 'new.test'),
    );
  });
});

describe('automatic mutual TLS', () => {
  it('auto mTLS is used depending on the metadata of endpoints', () => {
    const { transportSocketMatches, transportSocket } = cluster(service);
    expect(transportSocketMatches.map(({ name }) => name)).toEqual(['tlsMode-istio', 'tlsMode-disabled']);
    expect(transportSocket).toBeUndefined();
  });

  it.each([
    ["the service's namespace disables it", service + off, {}],
    ['the proxy has no certificates', service, { agent: false }],
    ['the mesh disables it', service, { meshConfig: 'enableAutoMtls: false' }],
    ['a DestinationRule disables it', service + rule('{ tls: { mode: DISABLE } }'), {}],
  ])('auto mTLS is off if %s', (_, yaml, options) => {
    const { transportSocketMatches, transportSocket } = cluster(yaml, options);
    expect([transportSocketMatches, transportSocket]).toEqual([[], undefined]);
  });

  it('an original-destination cluster uses auto mTLS for either all or no connections', () => {
    const passthrough = service + rule('{ loadBalancer: { simple: PASSTHROUGH } }');
    const tlsCluster = cluster(passthrough);
    expect(tlsCluster.transportSocketMatches).toEqual([]);
    expect(tlsOf(tlsCluster.transportSocket).sni).toBe('outbound_.80_._.web.test');
    const refusing = 'serviceAccount: web, labels: { security.istio.io/tlsMode: disabled }';
    expect(cluster(passthrough.replace('serviceAccount: web', refusing)).transportSocket).toBeUndefined();
  });

  it("auto mTLS uses the mesh's minimum TLS version", () => {
    const { transportSocketMatches } = cluster(service, { meshConfig: 'meshMTLS: { minProtocolVersion: TLSV1_3 }' });
    const { tlsParams } = tlsOf(transportSocketMatches[0]!.transportSocket).commonTlsContext!;
    expect(tlsParams!.tlsMinimumProtocolVersion).toBe(tlsParams!.tlsMaximumProtocolVersion);
  });
});

describe('mutual TLS of a DestinationRule', () => {
  const yaml = service + rule('{ tls: { mode: ISTIO_MUTUAL } }') + off;

  it('mutual TLS of a rule is independent of PeerAuthentication objects', () => {
    const { commonTlsContext } = tlsOf(cluster(yaml).transportSocket);
    expect(commonTlsContext!.tlsCertificateSdsSecretConfigs.map(({ name }) => name)).toEqual(['default']);
  });

  it('mutual TLS of a rule rejects all servers immediately if the proxy has no certificate', () => {
    const { commonTlsContext } = tlsOf(cluster(yaml, { agent: false }).transportSocket);
    expect(commonTlsContext!.tlsCertificateSdsSecretConfigs).toEqual([]);
    expect(commonTlsContext!.validationContextType).toMatchObject({
      case: 'validationContext',
      value: { verifyCertificateHash: ['0'.repeat(64)] },
    });
  });
});
