import * as E from 'fp-ts/lib/Either.js';
import { describe, expect, it } from 'vitest';
import { type NodeFields, parseNode } from './parse-node.ts';

const node = (overrides: Partial<NodeFields> = {}): NodeFields => ({
  id: 'sidecar~10.1.2.3~web-0.shop~shop.svc.cluster.local',
  cluster: 'web.shop',
  metadata: {},
  ...overrides,
});

describe('the node of a client', () => {
  it('is identified by its ID, and its metadata defines other properties', () => {
    const metadata = {
      NAMESPACE: 'prod',
      CLUSTER_ID: 'c1',
      NETWORK: 'n1',
      SERVICE_ACCOUNT: 'web',
      INTERCEPTION_MODE: 'NONE',
      LABELS: { app: 'web' },
      INSTANCE_IPS: '10.1.2.3,fd00::1,bad',
      FUTURE: [1],
    };
    expect(parseNode(node({ metadata }), { c1: 'cluster-one' })).toEqual(
      E.right({
        id: node().id,
        type: 'sidecar',
        ipAddresses: ['10.1.2.3', 'fd00::1'],
        name: 'web-0.shop',
        configNamespace: 'prod',
        dnsDomain: 'shop.svc.cluster.local',
        cluster: 'web.shop',
        labels: { app: 'web' },
        clusterId: 'cluster-one',
        network: 'n1',
        serviceAccount: 'web',
        interceptionMode: 'NONE',
        locality: '',
        metadata,
      }),
    );
  });

  it("defaults to its domain's namespace and to REDIRECT interception", () => {
    expect(parseNode(node())).toMatchObject(E.right({ configNamespace: 'shop', interceptionMode: 'REDIRECT' }));
  });

  it.each([
    [{ 'topology.kubernetes.io/region': 'r', 'topology.kubernetes.io/zone': 'z', 'istio-locality': 'x.y' }, 'r/z'],
    [{ 'istio-locality': 'x.y.z' }, 'x/y/z'],
    [{}, 'eu/eu-1'],
  ])('is, with labels %j, in the locality %s', (labels, locality) => {
    const parsed = parseNode(
      node({ metadata: { LABELS: labels }, locality: { region: 'eu', zone: 'eu-1', subZone: '' } }),
    );
    expect(parsed).toMatchObject(E.right({ locality }));
  });

  it('can send its labels as JSON text', () => {
    expect(parseNode(node({ metadata: { LABELS: '{"app":"web","v":1}' } }))).toMatchObject(
      E.right({ labels: { app: 'web', v: '1' } }),
    );
  });

  it.each([
    ['', 'missing node information'],
    ['sidecar~1.2.3.4~a', 'must have four parts'],
    ['envoy~1.2.3.4~a~b', 'node type must be sidecar or router, got "envoy"'],
    ['ztunnel~1.2.3.4~a~b', 'node type ztunnel is not supported'],
    ['sidecar~nowhere~a~b', 'valid IP address'],
  ])('is rejected if its ID is %j', (id, fragment) => {
    expect(parseNode(node({ id }))).toEqual(E.left(expect.stringContaining(fragment)));
  });

  it.each([
    ['api', 'metadata GENERATOR must be "grpc" or must not be set, got "api"'],
    [['grpc'], 'metadata GENERATOR must be "grpc" or must not be set, got ["grpc"]'],
    [7, 'metadata GENERATOR must be "grpc" or must not be set, got 7'],
  ])('is rejected if its GENERATOR is %j', (GENERATOR, fragment) => {
    expect(parseNode(node({ metadata: { GENERATOR } }))).toEqual(E.left(expect.stringContaining(fragment)));
  });

  it('is a gRPC client or server of type sidecar if GENERATOR is grpc', () => {
    expect(parseNode(node({ metadata: { GENERATOR: 'grpc' } }))).toMatchObject(E.right({ proxyless: true }));
    const id = 'router~10.0.0.1~a.b~c';
    expect(parseNode(node({ id, metadata: { GENERATOR: 'grpc' } }))).toEqual(
      E.left(expect.stringContaining('node type must be sidecar if metadata GENERATOR is "grpc", got "router"')),
    );
  });

  it('is rejected with a truncated quotation if its GENERATOR is very long', () => {
    const parsed = parseNode(node({ metadata: { GENERATOR: 'g'.repeat(1e6) } }));
    expect(E.isLeft(parsed) && parsed.left.length).toBeLessThan(300);
  });

  it.each([undefined, null, ''])('is an Envoy if it has no GENERATOR (%j)', (GENERATOR) => {
    expect(E.isRight(parseNode(node({ metadata: { GENERATOR } })))).toBe(true);
  });

  it('is rejected if its labels are invalid', () => {
    expect(parseNode(node({ metadata: { LABELS: 'app=web' } }))).toEqual(E.left(expect.stringContaining('LABELS')));
    expect(parseNode(node({ metadata: { NAMESPACE: 'n'.repeat(254) } }))).toEqual(
      E.left(expect.stringContaining('metadata NAMESPACE must have at most 253 characters, got 254')),
    );
  });
});
