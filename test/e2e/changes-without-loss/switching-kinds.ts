/** Kinds of changes that switch existing configuration: TLS modes, certificates, gateways, egress hosts of sidecars. */
import { joinDocuments, secret } from '../features/harness/gateway-objects.ts';
import { destinationRule, gateway, object, serviceEntry, virtualService } from '../features/harness/objects.ts';
import {
  type ChangeKind,
  httpTo,
  isOdd,
  kind,
  kubernetesService,
  routes,
  service,
  subset,
  subsets,
  target,
  withoutRetries,
} from './change-kinds.ts';
import { extensionRenamed } from './warming-kinds.ts';

const http: ChangeKind[] = [
  // Both weights refer to subsets that are renamed; one takes the previous name of the other.
  kind('subsets-renamed', (host, generation, world) => {
    const names = [`s${generation}`, `s${generation + 1}`];
    return joinDocuments(
      service(host, world),
      subsets(host, names),
      httpTo(
        host,
        world,
        names.map((name) => ({ host, subset: name })),
      ),
    );
  }),
  kind('retries', (host, generation, world) => {
    const name = `s${generation}`;
    const retries = { attempts: 2, retryOn: '5xx', perTryTimeout: '10s' };
    return joinDocuments(
      service(host, world),
      subsets(host, [name]),
      httpTo(host, world, [{ host, subset: name }], { retries }),
    );
  }),
  {
    ...kind('flapping-host', (host, generation, world) => {
      const other = 'flapping.backends.test';
      return isOdd(generation)
        ? joinDocuments(service(host, world), service(other, world), httpTo(host, world, [{ host: other }]))
        : joinDocuments(service(host, world), httpTo(host, world, [{ host }]));
    }),
  },
  {
    ...kind('flapping-route', (host, generation, world) => {
      const other = target('flapped', generation);
      return isOdd(generation)
        ? joinDocuments(service(host, world), service(other, world), httpTo(host, world, [{ host: other }]))
        : service(host, world);
    }),
    // Without a VirtualService, gateways have no route.
    proxies: 'sidecar',
  },
  {
    ...kind('sidecar-narrowed', (host, generation, world) => {
      const other = 'reach.backends.test';
      const otherService = service(other, world).replace('namespace: shop', 'namespace: reach');
      const isWide = isOdd(generation);
      return joinDocuments(
        service(host, world),
        otherService,
        httpTo(host, world, [{ host: isWide ? other : host }]),
        world.sidecars(isWide ? ['./*', 'reach/*'] : ['./*']),
      );
    }),
    definesSidecars: true,
    proxies: 'sidecar',
  },
];

const replacedHost = 'replaced.shop.svc.cluster.local';

const replacedKinds: ChangeKind[] = [
  {
    ...kind('service-entry-by-service', (host, generation, world) => {
      const { backend, ports } = world;
      const backends = [{ address: '127.0.0.1', port: backend, labels: { version: 'main' } }];
      const target = isOdd(generation)
        ? kubernetesService('replaced', backend, ports.http)
        : serviceEntry(replacedHost, { port: ports.http, backends });
      return joinDocuments(service(host, world), target, httpTo(host, world, [{ host: replacedHost }]));
    }),
    // The cluster keeps its name.
    isLossy: false,
  },
  {
    // The route still names the subset, so proxies keep its cluster.
    ...kind('rule-deleted', (host, generation, world) => {
      const rule = isOdd(generation) ? destinationRule(`other-${host}`, { subsets: [] }) : subsets(host, ['s']);
      return joinDocuments(service(host, world), rule, httpTo(host, world, [{ host, subset: 's' }]));
    }),
    isLossy: false,
  },
];

const tlsModes = [
  { mode: 'DISABLE' },
  { mode: 'ISTIO_MUTUAL' },
  { mode: 'SIMPLE', insecureSkipVerify: true },
  { mode: 'ISTIO_MUTUAL' },
];

const secured: ChangeKind[] = [
  {
    ...kind('tls-mode', (host, generation, world) => {
      const rule = destinationRule(host, { trafficPolicy: { tls: tlsModes[generation % tlsModes.length]! } });
      return joinDocuments(service(host, world), rule, httpTo(host, world, [{ host }]));
    }),
    isLossy: false,
  },
  kind('mutual-tls-subset', (host, generation, world) => {
    const name = `s${generation}`;
    const rule = { subsets: [{ ...subset(name), trafficPolicy: { tls: { mode: 'ISTIO_MUTUAL' } } }] };
    return joinDocuments(
      service(host, world),
      destinationRule(host, rule),
      httpTo(host, world, [{ host, subset: name }]),
    );
  }),
  {
    ...kind('peer-authentication', (_host, generation) =>
      object('security.istio.io/v1', 'PeerAuthentication', 'shop', 'default', {
        mtls: { mode: isOdd(generation) ? 'DISABLE' : 'PERMISSIVE' },
      }),
    ),
    proxies: 'inbound',
    isLossy: false,
  },
  {
    ...kind('tcp-host-replaced', (host, generation, world) => {
      const other = target('tcp', generation);
      const tcpOptions = { port: world.ports.tcp, protocol: 'TCP' };
      return joinDocuments(
        service(host, world, { ...tcpOptions, spec: { addresses: ['240.0.0.10'] } }),
        service(other, world, { ...tcpOptions, port: 9_100 }),
        routes(host, world, { tcp: [{ route: [{ destination: { host: other, port: { number: 9_100 } } }] }] }),
      );
    }),
    traffic: 'tcp',
    proxies: 'gateway',
  },
  {
    ...kind('tls-host-replaced', (host, generation, world) => {
      const other = target('tls', generation);
      return joinDocuments(
        service(host, world, { port: world.ports.tls, protocol: 'TLS' }),
        service(other, world, { port: 9_101, protocol: 'TLS' }),
        routes(host, world, {
          tls: [{ match: [{ sniHosts: [host] }], route: [{ destination: { host: other, port: { number: 9_101 } } }] }],
        }),
      );
    }),
    traffic: 'tls',
  },
];

/** The certificate, its name, the Gateway and the name of its route configuration change together. */
const httpsGateway: ChangeKind = {
  ...kind('https-gateway', (host, generation, world) => {
    const credential = `https-${generation}`;
    const name = (of: string): string => `https-${of}-${generation}`;
    const gateways = world.https.map(({ name: of, selector, port }) =>
      gateway(name(of), selector, [
        { port, protocol: 'HTTPS', hosts: [host], tls: { mode: 'SIMPLE', credentialName: credential } },
      ]),
    );
    const names = world.https.map(({ name: of }) => name(of));
    const other = target('https', generation);
    return joinDocuments(
      secret(credential, world.certificate),
      ...gateways,
      service(other, world),
      virtualService(host, {
        gateways: names,
        http: [{ route: [{ destination: { host: other } }], ...withoutRetries }],
      }),
    );
  }),
  traffic: 'https',
  proxies: 'gateway',
  targets: 'https',
};

/** Kinds that remove the resource that a replaced listener fetches by name. */
export const renamingKinds: readonly ChangeKind[] = [httpsGateway, extensionRenamed];

/** These kinds need workload certificates. */
export const switchingKinds: readonly ChangeKind[] = [...http, ...replacedKinds, ...secured];
