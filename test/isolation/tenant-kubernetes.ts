/**
 * Kubernetes objects, including those of the Gateway API, that a tenant may write with values of other namespaces'
 * objects.
 */
import type { KindName } from '../../src/model/kinds/index.ts';
import type { Draw } from '../random-config/draw.ts';
import * as of from './foreign-values.ts';
import type { BodyGenerator } from './tenant-istio.ts';

/** A status as controllers write it: permissions on all resources of a namespace include the status. */
const loadBalancer = (draw: Draw): object => ({
  status: { loadBalancer: { ingress: [{ ip: draw.pick(['203.0.113.1', '203.0.113.66', '10.1.1.1']) }] } },
});

const service = (draw: Draw): Readonly<Record<string, unknown>> => ({
  metadata: {
    labels: {
      ...draw.maybe('topology.istio.io/network', 0.3, () => draw.pick(['west', 'east'])),
      ...draw.maybe('networking.istio.io/gatewayPort', 0.1, () => '443'),
      ...draw.maybe('istio.io/global', 0.1, () => 'true'),
    },
    annotations: {
      ...draw.maybe('networking.istio.io/exportTo', 0.4, () => draw.pick(['*', '.', 'bank', '~'])),
      ...draw.maybe('alpha.istio.io/kubernetes-serviceaccounts', 0.2, () => 'ledger'),
      ...draw.maybe('networking.istio.io/traffic-distribution', 0.1, () => 'PreferSameNode'),
    },
  },
  spec: {
    ...draw.one<object>(
      () => ({ clusterIP: of.virtualAddress(draw).replace(/\/.*/, '') }),
      () => ({ clusterIP: 'None' }),
      () => ({ type: 'ExternalName', externalName: of.host(draw) }),
      () => ({ type: 'LoadBalancer', clusterIP: '10.96.66.1' }),
      () => ({ type: 'NodePort', clusterIP: '10.96.66.2' }),
    ),
    ...draw.maybe('selector', 0.5, () => of.labels(draw)),
    ...draw.maybe('externalIPs', 0.3, () => [of.virtualAddress(draw).replace(/\/.*/, '')]),
    ...draw.maybe('internalTrafficPolicy', 0.2, () => 'Local'),
    ports: draw.list(1, 2, (index) => ({
      name: draw.pick([`http-${index}`, `tcp-${index}`, `tls-${index}`, `p${index}`]),
      port: of.port(draw),
      targetPort: draw.pick<number | string>([8080, 80, 3306, 'http']),
      ...draw.maybe('nodePort', 0.2, () => 31_000 + index),
    })),
  },
  ...(draw.chance(0.4) && loadBalancer(draw)),
});

const slicePorts = (draw: Draw): object[] =>
  draw.list(1, 3, (index) => ({
    name: draw.pick(['http', 'tcp-db', `http-${index}`, `p${index}`, '']),
    port: of.port(draw),
  }));
const pod = (draw: Draw): object => ({
  kind: 'Pod',
  name: draw.pick(['ledger-0', 'mine-0']),
  namespace: draw.pick(['bank', of.tenant]),
});

const parentRefs = (draw: Draw): object[] =>
  draw.list(1, 2, () =>
    draw.one<object>(
      () => ({
        name: 'edge',
        namespace: 'istio-system',
        ...draw.maybe('sectionName', 0.6, () => draw.pick(['open', 'same', 'gold', 'secure'])),
      }),
      () => ({ name: 'edge', namespace: of.tenant }),
      () => ({
        kind: 'Service',
        group: '',
        name: of.serviceName(draw),
        namespace: of.namespace(draw),
        ...draw.maybe('port', 0.4, () => 80),
      }),
      () => ({ kind: 'ServiceEntry', group: 'networking.istio.io', name: 'rates', namespace: 'bank' }),
    ),
  );
const backendRefs = (draw: Draw): object[] => [
  { name: of.serviceName(draw), namespace: of.namespace(draw), port: of.port(draw) },
];
const hostnames = (draw: Draw): object =>
  draw.maybe('hostnames', 0.6, () =>
    draw.list(1, 2, () => draw.pick(['ledger.example.com', 'bank.example.com', '*.example.com', 'mine.example.org'])),
  );

const httpRoute: BodyGenerator = (draw) => ({
  parentRefs: parentRefs(draw),
  ...hostnames(draw),
  rules: [
    {
      ...draw.maybe('matches', 0.5, () => [{ path: { value: draw.pick(['/', '/a', '/v1']) } }]),
      ...draw.maybe('filters', 0.2, () => [
        { type: 'RequestHeaderModifier', requestHeaderModifier: { set: [{ name: 'x-mallory', value: 'yes' }] } },
      ]),
      backendRefs: backendRefs(draw),
    },
  ],
});

const l4Route: BodyGenerator = (draw) => ({
  parentRefs: parentRefs(draw),
  rules: [{ backendRefs: backendRefs(draw) }],
});

export const kubernetesObjects = {
  ConfigMap: (draw) => ({
    metadata: {
      labels: { 'istio.io/config': 'true' },
      name: draw.pick(['istio', 'istio-ca-root-cert', 'front-cacert', 'ca']),
    },
    data: {
      'ca.crt': 'mallory',
      mesh: 'defaultConfig: {concurrency: 1}',
      'root-cert.pem': 'mallory',
      meshNetworks: 'networks: {}',
    },
  }),
  Endpoints: (draw) => ({
    metadata: { name: of.serviceName(draw) },
    subsets: [
      {
        addresses: draw.list(1, 2, () => ({ ip: of.address(draw), ...draw.maybe('targetRef', 0.3, () => pod(draw)) })),
        ports: slicePorts(draw),
      },
    ],
  }),
  EndpointSlice: (draw) => ({
    metadata: {
      labels: {
        'kubernetes.io/service-name': of.serviceName(draw),
        ...draw.maybe('topology.istio.io/network', 0.2, () => 'west'),
      },
    },
    addressType: 'IPv4',
    endpoints: draw.list(1, 3, () => ({
      addresses: [of.address(draw)],
      conditions: { ready: draw.chance(0.8) },
      ...draw.maybe('targetRef', 0.4, () => pod(draw)),
      ...draw.maybe('nodeName', 0.3, () => 'node-1'),
      ...draw.maybe('hostname', 0.3, () => 'vault-0'),
    })),
    ports: slicePorts(draw),
  }),
  GRPCRoute: (draw) => ({
    parentRefs: parentRefs(draw),
    ...hostnames(draw),
    rules: [{ matches: [{ method: { service: 'bank.Ledger' } }], backendRefs: backendRefs(draw) }],
  }),
  HTTPRoute: httpRoute,
  Ingress: (draw) => ({
    metadata: { annotations: draw.maybe('kubernetes.io/ingress.class', 0.6, () => 'istio') },
    spec: {
      ...draw.maybe('ingressClassName', 0.5, () => 'istio'),
      ...draw.maybe('tls', 0.4, () => [{ hosts: ['bank.example.com'], secretName: 'front' }]),
      rules: [
        {
          ...draw.maybe('host', 0.7, () => draw.pick(['bank.example.com', 'mine.example.org', '*.example.com'])),
          http: {
            paths: [
              {
                path: '/',
                pathType: 'Prefix',
                backend: { service: { name: of.serviceName(draw), port: { number: 80 } } },
              },
            ],
          },
        },
      ],
    },
  }),
  KubernetesGateway: (draw) => ({
    gatewayClassName: 'istio',
    ...draw.maybe('addresses', 0.4, () => [
      {
        type: 'Hostname',
        value: draw.pick([
          'ingressgateway.istio-system.svc.cluster.local',
          'edge-istio.istio-system.svc.cluster.local',
          'mine',
        ]),
      },
    ]),
    listeners: [
      draw.one<object>(
        () => ({ name: 'http', port: of.port(draw), protocol: 'HTTP', allowedRoutes: { namespaces: { from: 'All' } } }),
        () => ({
          name: 'https',
          port: 443,
          protocol: 'HTTPS',
          hostname: 'bank.example.com',
          tls: { certificateRefs: [{ name: 'front', namespace: 'istio-system' }] },
        }),
        () => ({ name: 'tcp', port: of.port(draw), protocol: 'TCP' }),
      ),
    ],
  }),
  Pod: (draw) => {
    const ip = of.address(draw);
    return {
      metadata: { labels: of.labels(draw) },
      spec: {
        nodeName: 'node-1',
        serviceAccountName: draw.pick(['ledger', 'default']),
        hostNetwork: draw.chance(0.3),
        containers: [{ ports: [{ containerPort: of.port(draw), name: 'http' }] }],
      },
      status: { phase: 'Running', podIP: ip, podIPs: [{ ip }], conditions: [{ type: 'Ready', status: 'True' }] },
    };
  },
  BackendTLSPolicy: (draw) => ({
    targetRefs: [{ group: '', kind: 'Service', name: draw.pick(['ledger', 'web']) }],
    validation: {
      hostname: 'bank.example.com',
      ...draw.one<object>(
        () => ({ wellKnownCACertificates: 'System' }),
        () => ({ caCertificateRefs: [{ group: '', kind: 'ConfigMap', name: 'ca' }] }),
      ),
    },
  }),
  ReferenceGrant: (draw) => ({
    from: [
      { group: 'gateway.networking.k8s.io', kind: draw.pick(['Gateway', 'HTTPRoute']), namespace: of.namespace(draw) },
    ],
    to: [{ group: '', kind: draw.pick(['Secret', 'Service']) }],
  }),
  Secret: (draw) => ({
    metadata: { labels: draw.maybe('istio/multiCluster', 0.2, () => 'true') },
    type: draw.pick(['kubernetes.io/tls', 'Opaque']),
    data: { 'tls.crt': 'bWFsbG9yeQ==', 'tls.key': 'bWFsbG9yeQ==', 'ca.crt': 'bWFsbG9yeQ==' },
  }),
  Service: service,
  TCPRoute: l4Route,
  TLSRoute: (draw) => ({ ...l4Route(draw), hostnames: [draw.pick(['bank.example.com', '*.bank.svc.cluster.local'])] }),
} as const satisfies Partial<Record<KindName, BodyGenerator>>;
