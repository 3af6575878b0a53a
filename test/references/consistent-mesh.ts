/** A random mesh in which every reference is valid, so that nothing is reported. */
import { createAuthority } from '../certs/authority.ts';
import type { Draw } from '../random-config/draw.ts';

export interface MeshObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly labels?: object;
    readonly annotations?: object;
  };
  readonly [field: string]: unknown;
}

const namespaces = ['shop', 'bank'] as const;
export const edgeNamespace = 'edge';
export const extensionProvider = 'sampler';

/** Mesh configuration: these namespaces trust each other, and the provider of Telemetry objects exists. */
export const meshSettings = {
  exportingNamespaces: [...namespaces, edgeNamespace],
  extensionProviders: [
    { name: extensionProvider, zipkin: { service: 'a.shop.svc.cluster.local', port: 80 } },
    { name: 'checker', envoyExtAuthzHttp: { service: 'a.shop.svc.cluster.local', port: 80 } },
  ],
  defaultProviders: { tracing: [extensionProvider] },
};

const networking = 'networking.istio.io/v1';
const security = 'security.istio.io/v1';
const gatewayApi = 'gateway.networking.k8s.io/v1';

export function meshObject(
  apiVersion: string,
  kind: string,
  namespace: string,
  name: string,
  body: object,
): MeshObject {
  return { apiVersion, kind, metadata: { name, namespace }, ...body };
}

const cachedCertificates = new Map<string, { readonly certificate: string; readonly privateKey: string }>();

/** Shared by all meshes, because key generation is slow. */
function certificateOf(host: string): Record<string, string> {
  const issuedCertificate = cachedCertificates.get(host) ?? createAuthority().issue([host]);
  cachedCertificates.set(host, issuedCertificate);
  return { 'tls.crt': issuedCertificate.certificate, 'tls.key': issuedCertificate.privateKey };
}

interface App {
  readonly name: string;
  readonly namespace: string;
  readonly versions: readonly string[];
  readonly hasTcp: boolean;
  readonly hasTargetNames: boolean;
}

/** Equal draws give equal meshes. */
export function consistentMesh(draw: Draw, workloadsAs: 'Deployment' | 'Pod'): readonly MeshObject[] {
  const apps = namespaces.flatMap((namespace) =>
    ['a', 'b', 'c', 'd'].slice(0, draw.int(2, 4)).map((name): App => {
      const versions = draw.chance(0.6) ? ['v1', 'v2'] : ['v1'];
      return { name, namespace, versions, hasTcp: draw.chance(0.4), hasTargetNames: draw.chance(0.3) };
    }),
  );
  return [
    ...apps.flatMap((app, index) => [
      service(app, index),
      ...workloads(app, index, workloadsAs),
      ...(workloadsAs === 'Pod' ? [endpointsOf(app, index)] : []),
    ]),
    ...workloads(
      { name: 'edge', namespace: edgeNamespace, versions: ['v1'], hasTcp: false, hasTargetNames: false },
      20,
      workloadsAs,
    ),
    ...apps.flatMap((app) => objectsOfApp(app, apps, draw)),
    ...namespaces.flatMap((namespace) => externalServices(namespace, draw)),
    ...edge(apps, draw),
    ...policies(apps, draw),
    ...ingress(apps, draw),
  ];
}

const hostOf = ({ name, namespace }: App, draw: Draw, from: string): string => {
  const fullName = `${name}.${namespace}.svc.cluster.local`;
  return namespace === from && draw.chance(0.5) ? name : fullName;
};

function service({ name, namespace, hasTcp, hasTargetNames }: App, index: number): MeshObject {
  const ports = [
    { name: 'http', port: 80, targetPort: hasTargetNames ? 'web' : 8080 },
    ...(hasTcp ? [{ name: 'tcp-data', port: 9000, targetPort: hasTargetNames ? 'data' : 9000 }] : []),
  ];
  return meshObject('v1', 'Service', namespace, name, {
    spec: { clusterIP: `10.96.0.${index + 1}`, selector: { app: name }, ports },
  });
}

function endpointsOf({ name, namespace, versions, hasTcp }: App, index: number): MeshObject {
  const slice = meshObject('discovery.k8s.io/v1', 'EndpointSlice', namespace, `${name}-1`, {
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 8080 }, ...(hasTcp ? [{ name: 'tcp-data', port: 9000 }] : [])],
    endpoints: versions.map((version, versionIndex) => ({
      addresses: [podAddress(index, versionIndex)],
      conditions: { ready: true },
      targetRef: { kind: 'Pod', name: `${name}-${version}`, namespace },
    })),
  });
  return { ...slice, metadata: { ...slice.metadata, labels: { 'kubernetes.io/service-name': name } } };
}

const podAddress = (appIndex: number, versionIndex: number): string => `10.244.${appIndex}.${versionIndex + 1}`;

function workloads(
  { name, namespace, versions }: App,
  index: number,
  workloadKind: 'Deployment' | 'Pod',
): MeshObject[] {
  return versions.map((version, versionIndex) => {
    const isGateway = namespace === edgeNamespace;
    const labels = { app: name, version, ...(isGateway && { istio: 'ingressgateway' }) };
    const ports = [
      { name: 'web', containerPort: 8080 },
      { name: 'data', containerPort: 9000 },
    ];
    const spec = { serviceAccountName: `${name}-account`, containers: [{ name: 'app', image: 'app', ports }] };
    if (workloadKind === 'Deployment') {
      return meshObject('apps/v1', 'Deployment', namespace, `${name}-${version}`, {
        spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
      });
    }
    const podIP = podAddress(index, versionIndex);
    const status = {
      phase: 'Running',
      podIP,
      podIPs: [{ ip: podIP }],
      conditions: [{ type: 'Ready', status: 'True' }],
    };
    return {
      ...meshObject('v1', 'Pod', namespace, `${name}-${version}`, { spec, status }),
      metadata: { name: `${name}-${version}`, namespace, labels: { ...labels, 'security.istio.io/tlsMode': 'istio' } },
    };
  });
}

/** A DestinationRule and a VirtualService of a service, in its namespace. */
function objectsOfApp(app: App, apps: readonly App[], draw: Draw): MeshObject[] {
  const { name, namespace, versions, hasTcp } = app;
  const hasRule = draw.chance(0.7);
  const rule = meshObject(networking, 'DestinationRule', namespace, name, {
    spec: {
      host: hostOf(app, draw, namespace),
      ...draw.maybe('trafficPolicy', 0.5, () => ({
        connectionPool: { tcp: { maxConnections: 10 } },
        ...(hasTcp && {
          portLevelSettings: [{ port: { number: 9000 }, connectionPool: { tcp: { maxConnections: 5 } } }],
        }),
      })),
      subsets: versions.map((version) => ({ name: version, labels: { version } })),
    },
  });
  if (!draw.chance(0.7)) return hasRule ? [rule] : [];
  const destination = (): object => {
    const to = draw.chance(0.6) ? app : draw.pick(apps);
    const usesSubset = to === app && hasRule && draw.chance(0.6);
    return {
      destination: {
        host: hostOf(to, draw, namespace),
        ...(usesSubset && { subset: draw.pick(versions) }),
        ...(to.hasTcp ? { port: { number: 80 } } : draw.maybe('port', 0.6, () => ({ number: 80 }))),
      },
    };
  };
  const routes = [
    {
      match: [{ uri: { exact: '/one' } }, { uri: { prefix: '/two/' }, headers: { x: { exact: 'y' } } }],
      route: [destination()],
    },
    {
      match: [{ uri: { prefix: '/three/' }, method: { exact: 'GET' } }],
      route: [
        { ...destination(), weight: 60 },
        { ...destination(), weight: 40 },
      ],
    },
    ...(draw.chance(0.5) ? [{ match: [{ uri: { prefix: '/old/' } }], redirect: { uri: '/new' } }] : []),
    {
      route: [destination()],
      ...draw.maybe('mirror', 0.4, () => ({ host: hostOf(draw.pick(apps), draw, namespace), port: { number: 80 } })),
    },
  ];
  const virtualService = meshObject(networking, 'VirtualService', namespace, name, {
    spec: {
      hosts: [hostOf(app, draw, namespace)],
      http: routes,
      ...(hasTcp &&
        draw.chance(0.5) && {
          tcp: [
            {
              match: [{ port: 9000 }],
              route: [{ destination: { host: hostOf(app, draw, namespace), port: { number: 9000 } } }],
            },
          ],
        }),
    },
  });
  return [...(hasRule ? [rule] : []), virtualService];
}

function externalServices(namespace: string, draw: Draw): MeshObject[] {
  const host = `api.${namespace}.example.com`;
  const external = meshObject(networking, 'ServiceEntry', namespace, 'external', {
    spec: {
      hosts: [host],
      location: 'MESH_EXTERNAL',
      resolution: 'DNS',
      ports: [
        { number: 80, name: 'http', protocol: 'HTTP' },
        { number: 443, name: 'tls', protocol: 'TLS' },
      ],
    },
  });
  const machines = meshObject(networking, 'ServiceEntry', namespace, 'machines', {
    spec: {
      hosts: [`vm.${namespace}.example.com`],
      addresses: [namespace === 'shop' ? '10.97.0.1' : '10.97.0.2'],
      location: 'MESH_INTERNAL',
      resolution: 'STATIC',
      ports: [{ number: 3306, name: 'tcp', protocol: 'TCP' }],
      workloadSelector: { labels: { app: 'vm' } },
    },
  });
  const entry = meshObject(networking, 'WorkloadEntry', namespace, 'vm-1', {
    spec: {
      address: namespace === 'shop' ? '10.98.0.1' : '10.98.0.2',
      labels: { app: 'vm' },
      serviceAccount: 'vm-account',
    },
  });
  const tls = meshObject(networking, 'DestinationRule', namespace, 'external', {
    spec: {
      host,
      trafficPolicy: { portLevelSettings: [{ port: { number: 443 }, loadBalancer: { simple: 'ROUND_ROBIN' } }] },
    },
  });
  const retries = meshObject(networking, 'VirtualService', namespace, 'external', {
    spec: { hosts: [host], http: [{ timeout: '5s', route: [{ destination: { host, port: { number: 80 } } }] }] },
  });
  return [external, machines, entry, ...(draw.chance(0.5) ? [tls] : []), ...(draw.chance(0.5) ? [retries] : [])];
}

/** Gateways of both APIs, their Secret, and their routes. */
function edge(apps: readonly App[], draw: Draw): MeshObject[] {
  const app = draw.pick(apps);
  const { namespace } = app;
  const gateway = meshObject(networking, 'Gateway', edgeNamespace, 'front', {
    spec: {
      selector: { app: 'edge' },
      servers: [
        { port: { number: 80, name: 'http', protocol: 'HTTP' }, hosts: ['*.example.org'] },
        {
          port: { number: 443, name: 'https', protocol: 'HTTPS' },
          hosts: ['*.example.org'],
          tls: { mode: 'SIMPLE', credentialName: 'front-certificate' },
        },
        {
          port: { number: 9443, name: 'pass', protocol: 'TLS' },
          hosts: ['pass.example.io'],
          tls: { mode: 'PASSTHROUGH' },
        },
      ],
    },
  });
  const secret = {
    ...meshObject('v1', 'Secret', edgeNamespace, 'front-certificate', { type: 'kubernetes.io/tls' }),
    stringData: certificateOf('*.example.org'),
  };
  const destination = { host: hostOf(app, draw, namespace), port: { number: 80 } };
  const root = meshObject(networking, 'VirtualService', namespace, 'front', {
    spec: {
      hosts: ['www.example.org'],
      gateways: [`${edgeNamespace}/front`],
      http: [
        { match: [{ uri: { prefix: '/deep/' } }], delegate: { name: 'deep', namespace } },
        { route: [{ destination }] },
      ],
    },
  });
  const deep = meshObject(networking, 'VirtualService', namespace, 'deep', {
    spec: {
      http: [{ match: [{ uri: { prefix: '/deep/er/' } }], route: [{ destination }] }, { route: [{ destination }] }],
    },
  });
  const gatewayClass = {
    ...meshObject(gatewayApi, 'GatewayClass', '', 'istio', { spec: { controllerName: 'istio.io/gateway-controller' } }),
    metadata: { name: 'istio' },
  };
  const listener = (name: string, port: number, extraFields: object): object => ({
    ...{ name, port, hostname: '*.example.net', allowedRoutes: { namespaces: { from: 'All' } }, ...extraFields },
  });
  const tls = { mode: 'Terminate', certificateRefs: [{ name: 'front-certificate' }] };
  const other = meshObject(gatewayApi, 'Gateway', edgeNamespace, 'other', {
    spec: {
      gatewayClassName: 'istio',
      listeners: [listener('http', 8080, { protocol: 'HTTP' }), listener('https', 8443, { protocol: 'HTTPS', tls })],
    },
  });
  const route = meshObject(gatewayApi, 'HTTPRoute', namespace, 'other', {
    spec: {
      hostnames: ['www.example.net'],
      parentRefs: [{ name: 'other', namespace: edgeNamespace, ...draw.maybe('sectionName', 0.5, () => 'http') }],
      rules: [
        { matches: [{ path: { type: 'PathPrefix', value: '/x' } }], backendRefs: [{ name: app.name, port: 80 }] },
        { backendRefs: [{ name: app.name, port: 80, weight: 3 }] },
      ],
    },
  });
  const external = `api.${namespace}.example.com`;
  const pass = meshObject(networking, 'VirtualService', namespace, 'pass', {
    spec: {
      hosts: ['pass.example.io'],
      gateways: [`${edgeNamespace}/front`],
      tls: [
        {
          match: [{ sniHosts: ['pass.example.io'], port: 9443 }],
          route: [{ destination: { host: external, port: { number: 443 } } }],
        },
      ],
    },
  });
  const targeting = (kind: string, name: string, group: string, spec: object): MeshObject =>
    meshObject(security, kind, edgeNamespace, name, {
      spec: { targetRefs: [{ group: group.slice(0, group.indexOf('/')), kind: 'Gateway', name }], ...spec },
    });
  return [
    ...[gateway, secret, root, deep, gatewayClass as MeshObject, other, route, pass],
    targeting('AuthorizationPolicy', 'front', networking, { rules: [{ to: [{ operation: { paths: ['/x'] } }] }] }),
    targeting('RequestAuthentication', 'other', gatewayApi, {
      jwtRules: [{ issuer: 'https://issuer.example.com', jwks: '{"keys":[]}' }],
    }),
  ];
}

/** An Ingress with its class and Secret. */
function ingress(apps: readonly App[], draw: Draw): MeshObject[] {
  const { name, namespace } = draw.pick(apps);
  const path = (at: string, port: object): object => ({
    ...{ path: at, pathType: 'Prefix' },
    backend: { service: { name, port } },
  });
  const ingressClass = meshObject('networking.k8s.io/v1', 'IngressClass', '', 'istio', {
    spec: { controller: 'istio.io/ingress-controller' },
  });
  return [
    { ...ingressClass, metadata: { name: 'istio' } } as MeshObject,
    {
      ...meshObject('v1', 'Secret', 'istio-system', 'ingress-certificate', { type: 'kubernetes.io/tls' }),
      stringData: certificateOf('in.example.com'),
    },
    meshObject('networking.k8s.io/v1', 'Ingress', namespace, 'in', {
      spec: {
        ingressClassName: 'istio',
        tls: [{ hosts: ['in.example.com'], secretName: 'ingress-certificate' }],
        rules: [
          {
            host: 'in.example.com',
            http: { paths: [path('/number', { number: 80 }), path('/name', { name: 'http' })] },
          },
        ],
      },
    }),
  ];
}

function policies(apps: readonly App[], draw: Draw): MeshObject[] {
  return namespaces.flatMap((namespace) => {
    const app = draw.pick(apps.filter((one) => one.namespace === namespace));
    const matchLabels = { app: app.name };
    const selector = { matchLabels };
    const principal = `cluster.local/ns/${namespace}/sa/${app.name}-account`;
    const all = [
      meshObject(security, 'PeerAuthentication', namespace, 'peers', {
        spec: { selector, mtls: { mode: 'STRICT' }, portLevelMtls: { 8080: { mode: 'PERMISSIVE' } } },
      }),
      meshObject(security, 'AuthorizationPolicy', namespace, 'callers', {
        spec: {
          selector,
          action: 'ALLOW',
          rules: [
            {
              from: [{ source: { principals: [principal] } }],
              to: [{ operation: { paths: ['/x'], ports: ['8080'] } }],
            },
          ],
        },
      }),
      meshObject(security, 'AuthorizationPolicy', namespace, 'checked', {
        spec: {
          selector,
          action: 'CUSTOM',
          provider: { name: 'checker' },
          rules: [{ to: [{ operation: { paths: ['/y'] } }] }],
        },
      }),
      meshObject(security, 'RequestAuthentication', namespace, 'tokens', {
        spec: { selector, jwtRules: [{ issuer: 'https://issuer.example.com', jwks: '{"keys":[]}' }] },
      }),
      meshObject('extensions.istio.io/v1alpha1', 'WasmPlugin', namespace, 'filter', {
        spec: { selector, url: 'https://example.com/filter.wasm', sha256: 'a'.repeat(64) },
      }),
      meshObject('networking.istio.io/v1alpha3', 'EnvoyFilter', namespace, 'patches', {
        spec: {
          workloadSelector: { labels: matchLabels },
          configPatches: [
            {
              applyTo: 'CLUSTER',
              match: { context: 'SIDECAR_OUTBOUND' },
              patch: { operation: 'MERGE', value: { connect_timeout: '5s' } },
            },
          ],
        },
      }),
      meshObject('telemetry.istio.io/v1', 'Telemetry', namespace, 'traces', {
        spec: { selector, tracing: [{ providers: [{ name: extensionProvider }], randomSamplingPercentage: 10 }] },
      }),
      meshObject(networking, 'Sidecar', namespace, 'reach', {
        spec: {
          workloadSelector: { labels: matchLabels },
          egress: [
            {
              port: { number: 80, name: 'http', protocol: 'HTTP' },
              hosts: [`./${app.name}.${namespace}.svc.cluster.local`],
            },
            {
              hosts: [
                './*',
                `${namespace === 'shop' ? 'bank' : 'shop'}/*`,
                `./api.${namespace}.example.com`,
                `*/*.${namespace}.svc.cluster.local`,
              ],
            },
          ],
          ingress: [{ port: { number: 8080, name: 'http', protocol: 'HTTP' }, defaultEndpoint: '127.0.0.1:8080' }],
        },
      }),
    ];
    return all.filter(() => draw.chance(0.8));
  });
}
