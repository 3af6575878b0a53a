/** Kinds of changes. Each is a function from a generation to objects; the objects of the next generation replace those of the previous one. */
import { stringify } from 'yaml';
import type { IssuedCertificate } from '../../certs/authority.ts';
import { joinDocuments } from '../features/harness/gateway-objects.ts';
import { destinationRule, object, serviceEntry, virtualService } from '../features/harness/objects.ts';

/** Names and ports that the objects of a kind refer to. */
export interface World {
  /** Ports of services on which sidecars listen. */
  readonly ports: { readonly http: number; readonly tcp: number; readonly tls: number };
  /** Names of the Gateways that VirtualServices attach to, in addition to `mesh`. */
  readonly gateways: readonly string[];
  /** Names of the Kubernetes Gateways that HTTPRoutes attach to. */
  readonly kubernetesGateways: readonly string[];
  /** Where a kind may add a server with TLS, for each gateway. */
  readonly https: readonly {
    readonly name: string;
    readonly selector: Readonly<Record<string, string>>;
    readonly port: number;
  }[];
  /** The Sidecar objects of all sidecars, with these egress hosts. */
  readonly sidecars: (egressHosts: readonly string[]) => string;
  /** Port of the application at 127.0.0.1. */
  readonly backend: number;
  /** Port of the application that receives mirrored requests. */
  readonly mirror: number;
  /** Certificate of the application, with its key. */
  readonly certificate: IssuedCertificate;
  /** Certificate of the authority that issued `certificate`. */
  readonly authority: string;
}

export interface ChangeKind {
  readonly name: string;
  /** Protocol of the clients (default `http`). */
  readonly traffic?: 'http' | 'tcp' | 'tls' | 'https';
  /** Proxies that the change affects (default: both). */
  readonly proxies?: 'gateway' | 'sidecar' | 'inbound';
  /** Whether the objects include those of `World.sidecars`. */
  readonly definesSidecars?: true;
  /** Whether requests fail without make before break, soon and often enough for a test to wait for a failure (default true). */
  readonly isLossy?: false;
  /** Prefix of the service hosts that each generation replaces. */
  readonly targets?: string;
  readonly config: (generation: number, world: World) => string;
  /** Objects that are written some time after the others. */
  readonly late?: (generation: number, world: World) => string;
}

/** Host that clients request for a kind. */
export const hostOf = (kind: Pick<ChangeKind, 'name'>): string => `${kind.name}.shop.test`;

export const isOdd = (generation: number): boolean => generation % 2 === 1;

export function service(
  host: string,
  world: World,
  options: { port?: number; protocol?: string; spec?: object } = {},
): string {
  const { port = world.ports.http, protocol, spec } = options;
  const backends = [{ address: '127.0.0.1', port: world.backend, labels: { version: 'main' } }];
  return serviceEntry(host, { port, backends, ...(protocol && { protocol }), ...(spec && { spec: { ...spec } }) });
}

export function routes(host: string, world: World, spec: object): string {
  return virtualService(host, { gateways: ['mesh', ...world.gateways], ...spec });
}

/** A retry would hide a failed request. */
export const withoutRetries = { retries: { attempts: 0 } };

export function httpTo(host: string, world: World, destinations: readonly object[], extraFields: object = {}): string {
  const weight = 100 / destinations.length;
  const route = destinations.map((destination) => ({ destination, weight }));
  return routes(host, world, { http: [{ route, ...withoutRetries, ...extraFields }] });
}

export const subset = (name: string): object => ({ name, labels: { version: 'main' } });
export const subsets = (host: string, names: readonly string[], extraFields: object = {}): string =>
  destinationRule(host, { subsets: names.map(subset), ...extraFields });

export function kind(name: string, config: (host: string, generation: number, world: World) => string): ChangeKind {
  return { name, config: (generation, world) => config(hostOf({ name }), generation, world) };
}

/** Name of the service that a route of this generation leads to; differs from the host of the clients. */
export const target = (name: string, generation: number): string => `${name}-${generation}.backends.test`;

const routesOfHttp: ChangeKind[] = [
  kind('subset-added', (host, generation, world) => {
    const usedSubset = isOdd(generation) ? `s${generation}` : 'base';
    const names = isOdd(generation) ? ['base', usedSubset] : ['base'];
    return joinDocuments(
      service(host, world),
      subsets(host, names),
      httpTo(host, world, [{ host, subset: usedSubset }]),
    );
  }),
  kind('subset-replaced', (host, generation, world) =>
    joinDocuments(
      service(host, world),
      subsets(host, [`s${generation}`]),
      httpTo(host, world, [{ host, subset: `s${generation}` }]),
    ),
  ),
  {
    ...kind('dns-subset-replaced', (host, generation, world) =>
      joinDocuments(
        service(host, world, { spec: resolved }).replaceAll('address: 127.0.0.1', 'address: localhost'),
        subsets(host, [`s${generation}`]),
        httpTo(host, world, [{ host, subset: `s${generation}` }]),
      ),
    ),
    // DNS resolves the name in less than a millisecond.
    isLossy: false,
  },
  kind('weights', (host, generation, world) => {
    const names = [`a${generation}`, `b${generation}`];
    const destinations = names.map((name) => ({ host, subset: name }));
    return joinDocuments(service(host, world), subsets(host, names), httpTo(host, world, destinations));
  }),
  {
    ...kind('mirror', (host, generation, world) => {
      const shadow = target('shadow', generation);
      const mirrored = service(shadow, { ...world, backend: world.mirror });
      const mirrorFields = { mirrors: [{ destination: { host: shadow }, percentage: { value: 100 } }] };
      return joinDocuments(service(host, world), mirrored, httpTo(host, world, [{ host }], mirrorFields));
    }),
    targets: 'shadow',
    // Clients do not notice lost mirrored requests.
    isLossy: false,
  },
  kind('held-by-a-fault', (host, generation, world) => {
    const fault = { delay: { percentage: { value: 100 }, fixedDelay: '0.2s' } };
    const destination = { host, subset: `s${generation}` };
    return joinDocuments(
      service(host, world),
      subsets(host, [`s${generation}`]),
      httpTo(host, world, [destination], { fault }),
    );
  }),
];

const resolved = { resolution: 'DNS' };

const services: ChangeKind[] = [
  // `host-replaced` changes the host of an object; `service-entry-replaced` replaces the object.
  {
    ...kind('host-replaced', (host, generation, world) => {
      const next = target('host', generation);
      const renamedService = service(next, world).replace(/name: host-\d+-backends-test/, 'name: host-backends');
      return joinDocuments(service(host, world), renamedService, httpTo(host, world, [{ host: next }]));
    }),
    targets: 'host',
  },
  {
    ...kind('service-entry-replaced', (host, generation, world) => {
      const next = target('entry', generation);
      return joinDocuments(service(host, world), service(next, world), httpTo(host, world, [{ host: next }]));
    }),
    targets: 'entry',
  },
  {
    ...kind('tls-changed', (host, generation, world) => {
      const tls = isOdd(generation) ? { mode: 'SIMPLE', insecureSkipVerify: true } : { mode: 'DISABLE' };
      const rule = destinationRule(host, { trafficPolicy: { tls } });
      return joinDocuments(service(host, world), rule, httpTo(host, world, [{ host }]));
    }),
    // An update in place: Envoy keeps the cluster until the new one is warm.
    isLossy: false,
  },
  {
    ...kind('type-changed', (host, generation, world) => {
      const entry = isOdd(generation)
        ? service(host, world, { spec: resolved }).replaceAll('address: 127.0.0.1', 'address: localhost')
        : service(host, world);
      return joinDocuments(entry, httpTo(host, world, [{ host }]));
    }),
    // An update in place: Envoy keeps the cluster until the new one is warm.
    isLossy: false,
  },
];

const connections: ChangeKind[] = [
  {
    ...kind('tcp-route', (host, generation, world) =>
      joinDocuments(
        service(host, world, { port: world.ports.tcp, protocol: 'TCP', spec: { addresses: ['240.0.0.9'] } }),
        subsets(host, [`s${generation}`]),
        routes(host, world, { tcp: [{ route: [{ destination: { host, subset: `s${generation}` } }] }] }),
      ),
    ),
    traffic: 'tcp',
  },
  {
    ...kind('tls-route', (host, generation, world) =>
      joinDocuments(
        service(host, world, { port: world.ports.tls, protocol: 'TLS' }),
        subsets(host, [`s${generation}`]),
        routes(host, world, {
          tls: [
            {
              match: [{ sniHosts: [host] }],
              route: [{ destination: { host, subset: `s${generation}` } }],
            },
          ],
        }),
      ),
    ),
    traffic: 'tls',
  },
];

const gateways: ChangeKind[] = [
  {
    ...kind('http-route', (host, generation, world) => {
      const name = `backend-${generation}`;
      const parentRefs = world.kubernetesGateways.map((gateway) => ({ name: gateway }));
      const rules = [{ backendRefs: [{ name, port: 80 }] }];
      const route = { parentRefs, hostnames: [host], rules };
      return joinDocuments(
        kubernetesService(name, world.backend),
        object('gateway.networking.k8s.io/v1', 'HTTPRoute', 'shop', 'http-route', route),
      );
    }),
    proxies: 'gateway',
  },
  {
    ...kind('authorization', (host, generation, world) => {
      const next = authorizationServices[generation % 2]!;
      const policy = {
        action: 'CUSTOM',
        provider: { name: next },
        rules: [{ to: [{ operation: { hosts: [host] } }] }],
      };
      return joinDocuments(
        service(host, world),
        service(next, { ...world, backend: world.mirror }, { port: authorizationPort }).replace(
          'namespace: shop',
          `namespace: ${authorizationNamespace}`,
        ),
        httpTo(host, world, [{ host }]),
        object('security.istio.io/v1', 'AuthorizationPolicy', 'shop', 'authorization', policy),
      );
    }),
    proxies: 'gateway',
  },
];

/** A service, and routes to it at these Gateways, which have no other routes. */
export function newService(host: string, gateways: readonly string[], world: World): string {
  return joinDocuments(
    service(host, world),
    virtualService(host, { gateways, http: [{ route: [{ destination: { host } }], ...withoutRetries }] }),
  );
}

/** Authorization services; consecutive generations use different ones. */
const authorizationServices = ['authorization-even.backends.test', 'authorization-odd.backends.test'];
const authorizationPort = 9_000;
/** No other kind changes clusters of this namespace: an update in place resets pending authorization checks (docs/changes-without-loss.md). */
const authorizationNamespace = 'authorization';

/** Providers in the mesh configuration, for the kind `authorization`. */
export const extensionProviders = authorizationServices.map((name) => ({
  name,
  envoyExtAuthzHttp: { service: name, port: authorizationPort, timeout: '20s' },
}));

/** @param port of the application */
export function kubernetesService(name: string, port: number, servicePort = 80): string {
  const ports = [{ name: 'http', port: servicePort, targetPort: port }];
  const labels = { 'kubernetes.io/service-name': name };
  return joinDocuments(
    stringify({ apiVersion: 'v1', kind: 'Service', metadata: { name, namespace: 'shop' }, spec: { ports } }),
    stringify({
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: `${name}-1`, namespace: 'shop', labels },
      addressType: 'IPv4',
      ports: [{ name: 'http', port }],
      endpoints: [{ addresses: ['127.0.0.1'] }],
    }),
  );
}

/** Changes the sidecar's listener for inbound connections. Its routes are part of the listener, and the next cluster has a new name. */
const inbound: ChangeKind = {
  ...kind('inbound', (_host, generation, world) => {
    const name = `inbound-${generation}`;
    const address = { socket_address: { address: '127.0.0.1', port_value: world.backend } };
    const cluster = {
      name,
      type: 'STRICT_DNS',
      dns_lookup_family: 'V4_ONLY',
      connect_timeout: '1s',
      load_assignment: {
        cluster_name: name,
        endpoints: [
          {
            lb_endpoints: [
              { endpoint: { address: { socket_address: { ...address.socket_address, address: 'localhost' } } } },
            ],
          },
        ],
      },
    };
    return object('networking.istio.io/v1alpha3', 'EnvoyFilter', 'shop', 'inbound', {
      configPatches: [
        {
          applyTo: 'CLUSTER',
          match: { context: 'SIDECAR_INBOUND' },
          patch: { operation: 'ADD', value: cluster },
        },
        {
          applyTo: 'HTTP_ROUTE',
          match: { context: 'SIDECAR_INBOUND' },
          patch: { operation: 'MERGE', value: { route: { cluster: name } } },
        },
      ],
    });
  }),
  proxies: 'inbound',
};

export const plainKinds: readonly ChangeKind[] = [...routesOfHttp, ...services, ...connections, ...gateways, inbound];
