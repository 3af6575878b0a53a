import { describe, expect, it } from 'vitest';
import { type GivenNode, givenMesh, givenShape } from '../../../test/fixtures/given-mesh.ts';
import { explainEndpoints } from './explain-endpoints.ts';

const entry = (spec: string, name = 'web') => `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: ${name}, namespace: shop }
spec: { hosts: [web.test], location: MESH_INTERNAL, ports: [{ number: 80, name: http, protocol: HTTP }, { number: 81, name: admin, protocol: HTTP }], ${spec} }
---`;
const rule = (spec: string) => `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: { name: web, namespace: shop }
spec: { host: web.test, ${spec} }
---`;
const gateway = `
apiVersion: v1
kind: Service
metadata: { name: ew, namespace: istio-system, labels: { topology.istio.io/network: n2 } }
spec: { type: LoadBalancer, clusterIP: 10.99.0.1, ports: [{ name: tls, port: 15443 }] }
status: { loadBalancer: { ingress: [{ ip: 127.0.0.99 }] } }
---`;
const remote = (tlsMode: string) =>
  `resolution: STATIC, endpoints: [{ address: 10.0.0.9, network: n2, labels: { security.istio.io/tlsMode: ${tlsMode} } }]`;
const inN1: GivenNode = { namespace: 'shop', metadata: { NETWORK: 'n1' } };

const cases: readonly [title: string, yaml: string, cluster: string, reasons: readonly unknown[], node?: GivenNode][] =
  [
    ['the service is unknown', '', 'outbound|80||web.test', ['no service web.test is visible to this proxy']],
    ['the service has no such port', entry('resolution: STATIC'), 'outbound|90||web.test', ['web.test has no port 90']],
    [
      'no rule defines the subset',
      entry('resolution: STATIC'),
      'outbound|80|v1|web.test',
      ['no DestinationRule of web.test defines subset v1'],
    ],
    [
      'the service has no endpoints',
      entry('resolution: STATIC, workloadSelector: { labels: { app: web } }'),
      'outbound|80||web.test',
      [expect.stringMatching(/^web.test has no endpoints: .*workloadSelector/)],
    ],
    [
      'no endpoint has the labels of the subset',
      entry('resolution: STATIC, endpoints: [{ address: 10.0.0.1 }]') +
        rule('subsets: [{ name: v1, labels: { version: v1 } }]'),
      'outbound|80|v1|web.test',
      ['1 of 1 do not have the labels of the subset: 10.0.0.1:80'],
    ],
    [
      'a workload without an address is in a network without a gateway',
      entry('resolution: STATIC, endpoints: [{ network: n3 }, { address: 10.0.0.1, network: n1 }]') + gateway,
      'outbound|80||web.test',
      [expect.stringMatching(/^1 of 2 have no address, and no gateway of their network is known: .*network n3$/)],
      inN1,
    ],
    [
      'a workload without an address belongs to a DNS service',
      entry('resolution: DNS, endpoints: [{ network: n2 }, { address: a.test }]') + gateway,
      'outbound|80||web.test',
      [expect.stringMatching(/^1 of 2 have no address.*network n2$/)],
      inN1,
    ],
    [
      'clients in a different network use plaintext',
      entry(remote('istio')) + gateway + rule('trafficPolicy: { tls: { mode: DISABLE } }'),
      'outbound|80||web.test',
      [
        expect.stringMatching(
          /^1 of 1 are behind gateways .* clients of this service do not use it .*10.0.0.9:80 of network n2$/,
        ),
      ],
      inN1,
    ],
    [
      'workloads in a different network only accept plaintext',
      entry(remote('disabled')) + gateway,
      'outbound|80||web.test',
      [
        expect.stringMatching(
          /^1 of 1 are behind gateways .*; these workloads do not accept it: 10.0.0.9:80 of network n2$/,
        ),
      ],
      inN1,
    ],
    [
      'a different network has no gateway',
      entry(remote('istio')),
      'outbound|80||web.test',
      ['1 of 1 are reached directly, because no gateway of their network is known: 10.0.0.9:80 of network n2'],
      inN1,
    ],
    [
      'all workloads of an SNI cluster accept plaintext only',
      entry('resolution: STATIC, endpoints: [{ address: 10.0.0.1 }]'),
      'outbound_.80_._.web.test',
      ['1 of 1 do not accept mutual TLS, which this cluster passes through: 10.0.0.1:80'],
    ],
  ];

describe('reasons for missing endpoints', () => {
  it.each(cases)('a reason is reported if %s', (_, yaml, cluster, reasons, node = { namespace: 'shop' }) => {
    const { context } = givenMesh(yaml);
    expect(explainEndpoints(cluster, givenShape(node, context), context)).toEqual(reasons);
  });

  it('a reason is reported for pods that are not ready or run on another node', () => {
    const { context } = givenMesh(`
apiVersion: v1
kind: Service
metadata: { name: web, namespace: shop }
spec: { clusterIP: 10.99.0.10, internalTrafficPolicy: Local, ports: [{ name: http, port: 80 }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-1, namespace: shop, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ name: http, port: 80 }]
endpoints:
  - { addresses: [10.0.0.1], nodeName: a, conditions: { ready: false } }
  - { addresses: [10.0.0.2], nodeName: b, conditions: { ready: true } }
`);
    const shape = givenShape({ namespace: 'shop', metadata: { NODE_NAME: 'a' } }, context);
    expect(explainEndpoints('outbound|80||web.shop.svc.cluster.local', shape, context)).toEqual([
      '1 of 2 run on a different node (internalTrafficPolicy is Local): 10.0.0.2:80',
      '1 of 2 are in the cluster and not ready, so Envoy sends them no requests: 10.0.0.1:80',
    ]);
  });

  it('no reason is reported if the cluster has all endpoints of its port', () => {
    const { context } = givenMesh(entry('resolution: STATIC, endpoints: [{ address: 10.0.0.1 }]'));
    expect(explainEndpoints('outbound|80||web.test', givenShape({ namespace: 'shop' }, context), context)).toEqual([]);
  });

  it('host names are reported only if Envoy does not resolve them', () => {
    const explainResolution = (resolution: string) => {
      const { context } = givenMesh(entry(`resolution: ${resolution}, endpoints: [{ address: vm.test }]`, 'dns'));
      return explainEndpoints('outbound|80||web.test', givenShape({ namespace: 'shop' }, context), context);
    };
    expect(explainResolution('DNS')).toEqual([]);
  });
});
