/**
 * Effects that Istio's model allows a tenant to have on other namespaces: the rows of the table in SECURITY.md. Any other effect on a victim is a
 * fault.
 */

import type { Config } from '../../src/model/config/config.ts';
import type { ReachCode } from '../../src/model/isolation/cross-namespace-reach.ts';
import type { KubernetesService } from '../../src/model/kinds/kubernetes/service.ts';
import type { VirtualService } from '../../src/model/kinds/virtual-service/virtual-service.ts';
import type { ServiceEntry } from '../../src/model/kinds/workloads/service-entry.ts';
import type { VictimEffect } from './effects.ts';
import { tenant } from './foreign-values.ts';
import { type IsolationSettings, victimConfigs } from './victims.ts';

export interface DocumentedCase {
  /** Row title in SECURITY.md. */
  readonly title: string;
  /** Code of the warning of `validate`; absent if the effect is the purpose of exports. */
  readonly code?: ReachCode;
  /** Objects of an attack, as JSON. */
  readonly example: readonly object[];
  /** A setting that prevents the case, in addition to `exportingNamespaces`. */
  readonly closedBy?: IsolationSettings;
  /** Whether the warning is about an object outside the tenant's namespace. */
  readonly isOwnersChoice?: true;
  /** Whether the case explains an effect. @param causes objects without which the effect does not occur */
  readonly allows: (effect: VictimEffect, causes: readonly Config[]) => boolean;
}

const causesOfKind = <Spec>(causes: readonly Config[], ...kinds: readonly string[]): readonly Config<Spec>[] =>
  causes.filter(({ kind }) => kinds.includes(kind)) as readonly Config<Spec>[];

function hostsOf(causes: readonly Config[]): readonly string[] {
  return [
    ...causesOfKind<ServiceEntry>(causes, 'ServiceEntry').flatMap(({ spec }) => spec.hosts),
    ...causesOfKind(causes, 'Service').map(({ name }) => `${name}.${tenant}.svc.cluster.local`),
  ];
}

function portsOf(causes: readonly Config[]): readonly number[] {
  return [
    ...causesOfKind<ServiceEntry>(causes, 'ServiceEntry').flatMap(({ spec }) => spec.ports.map(({ number }) => number)),
    ...causesOfKind<KubernetesService>(causes, 'Service').flatMap(({ spec }) =>
      spec.spec.ports.map(({ port }) => port),
    ),
  ];
}

const victimEntries = causesOfKind<ServiceEntry>(victimConfigs(), 'ServiceEntry');

/** Whether the name of a resource or of its part contains one of the hosts. */
function isForHosts({ resource, part }: VictimEffect, hosts: readonly string[]): boolean {
  const effectNames = [resource.split('|').at(-1)!, resource.split('_.').at(-1)!, resource, part].map((name) =>
    name.replace(/:\d+$/, ''),
  );
  return hosts.some((host) => {
    const name = host.replace(/^\*\./, '');
    const isNamed = effectNames.some((one) => one === host || one === name || one.endsWith(`.${name}`));
    return isNamed || part.includes(`.${name}"`);
  });
}

const isOnPorts = ({ resource }: VictimEffect, ports: readonly number[]): boolean =>
  ports.includes(Number(/(?:^|[_:.])(\d+)$/.exec(resource)?.[1]));

/** Whether only the names and addresses of a virtual host differ. */
function differsInDomains({ type, previous, current }: VictimEffect): boolean {
  if (type !== 'RouteConfiguration' || previous === undefined || current === undefined) return false;
  const withoutDomains = (host: unknown): string => JSON.stringify({ ...(host as object), domains: [] });
  return withoutDomains(previous) === withoutDomains(current);
}

/** Replacer for `JSON.stringify` that omits the filter for dynamic names. */
function withoutDynamicNames(_: string, value: unknown): unknown {
  if (!Array.isArray(value)) return value;
  return value.filter((item) => item?.name !== 'envoy.filters.http.dynamic_forward_proxy');
}

const isFront = ({ victim }: VictimEffect): boolean => victim === 'ingress gateway';
const http = (name: string, number = 80): object => ({ number, name, protocol: 'HTTP' });
const istio = (kind: string, spec: object, name = 'attack'): object => ({
  ...{ apiVersion: 'networking.istio.io/v1', kind },
  metadata: { name, namespace: tenant, creationTimestamp: '2019-01-01T00:00:00Z' },
  spec,
});
const redirect = { redirect: { authority: 'mine.example.org' } };

export const documentedCases: readonly DocumentedCase[] = [
  {
    title: 'exports its own services',
    example: [istio('ServiceEntry', { hosts: ['mine.example.org'], resolution: 'DNS', ports: [http('http', 4444)] })],
    allows: (effect, causes) =>
      effect.change === 'new' &&
      (isForHosts(effect, hostsOf(causes)) ||
        (['Listener', 'RouteConfiguration'].includes(effect.type) && isOnPorts(effect, portsOf(causes)))),
  },
  {
    title: "gives another namespace's service a name of its own with an ExternalName Service",
    code: 'aliases-foreign-host',
    example: [
      {
        ...{ apiVersion: 'v1', kind: 'Service' },
        metadata: { name: 'attack', namespace: tenant, creationTimestamp: '2019-01-01T00:00:00Z' },
        spec: { type: 'ExternalName', externalName: 'rates.example.com' },
      },
    ],
    // The name is added to existing matches of a chain or a virtual host.
    allows: (effect, causes) =>
      causesOfKind<KubernetesService>(causes, 'Service').some(({ spec }) => spec.spec.type === 'ExternalName') &&
      ((effect.type === 'Listener' && effect.part.includes('serverNames')) || differsInDomains(effect)),
  },
  {
    title:
      'adds the filter that resolves dynamic names to HTTP listeners, with a ServiceEntry of resolution DYNAMIC_DNS',
    code: 'adds-dynamic-dns',
    example: [
      istio('ServiceEntry', { hosts: ['*.mine.example.org'], resolution: 'DYNAMIC_DNS', ports: [http('http', 4444)] }),
    ],
    allows: ({ type, previous, current }, causes) =>
      type === 'Listener' &&
      causesOfKind<ServiceEntry>(causes, 'ServiceEntry').some(({ spec }) => spec.resolution === 'DYNAMIC_DNS') &&
      JSON.stringify(previous) === JSON.stringify(current, withoutDynamicNames),
  },
  {
    title: "claims a host of another namespace's ServiceEntry, or a short name of its Service",
    code: 'claims-foreign-host',
    example: [
      istio('ServiceEntry', {
        hosts: ['rates.example.com'],
        addresses: ['10.200.0.1'],
        resolution: 'STATIC',
        ports: [http('http')],
        endpoints: [{ address: '10.66.0.1' }],
      }),
    ],
    allows: (effect, causes) => {
      const hosts = hostsOf(causesOfKind(causes, 'ServiceEntry'));
      const isHostResource = ['Cluster', 'ClusterLoadAssignment', 'RouteConfiguration', 'NameTable'].includes(
        effect.type,
      );
      const isKubernetes = / outbound\S*\.svc\.cluster\.local$/.test(` ${effect.resource}`);
      // The tenant's entry has the listeners of the entry whose host it claims.
      const claimedEntries = victimEntries.filter(({ spec }) => spec.hosts.some((host) => hosts.includes(host)));
      if (effect.type === 'Listener' && isOnPorts(effect, portsOf(claimedEntries))) return true;
      return (
        (hosts.length > 0 && differsInDomains(effect)) || (isHostResource && !isKubernetes && isForHosts(effect, hosts))
      );
    },
  },
  {
    title: 'captures addresses with a ServiceEntry: 0.0.0.0/0, or the virtual address of another service',
    code: 'captures-addresses',
    example: [
      istio('ServiceEntry', {
        hosts: ['mine.example.org'],
        addresses: ['0.0.0.0/0'],
        resolution: 'STATIC',
        ports: [{ number: 3306, name: 'tcp', protocol: 'TCP' }],
        endpoints: [{ address: '10.66.0.1' }],
      }),
    ],
    allows: (effect, causes) => {
      const isOnCausePorts = isOnPorts(effect, portsOf(causes));
      const hasServices = causesOfKind(causes, 'Service', 'ServiceEntry').length > 0;
      if (!hasServices || effect.resource.startsWith('virtual')) return false;
      return (effect.type === 'Listener' && isOnCausePorts) || differsInDomains(effect) || effect.resource === 'order';
    },
  },
  {
    title: 'captures a port with a service that has no address and is not HTTP',
    code: 'captures-port',
    example: [
      istio('ServiceEntry', {
        hosts: ['mine.example.org'],
        resolution: 'STATIC',
        ports: [{ number: 9090, name: 'tcp', protocol: 'TCP' }],
        endpoints: [{ address: '10.66.0.1' }],
      }),
    ],
    allows: (effect, causes) =>
      effect.type === 'Listener' &&
      causesOfKind(causes, 'Service', 'ServiceEntry').length > 0 &&
      isOnPorts(effect, portsOf(causes)),
  },
  {
    title: 'routes requests for foreign hosts with a VirtualService, in the mesh or at a gateway that takes all hosts',
    code: 'routes-foreign-host',
    example: [istio('VirtualService', { hosts: ['ledger.bank.svc.cluster.local'], http: [redirect] })],
    allows: ({ type, resource }, causes) =>
      causesOfKind<VirtualService>(causes, 'VirtualService').some(({ spec }) => spec.hosts.length > 0) &&
      (type === 'RouteConfiguration' || (type === 'Listener' && !resource.startsWith('virtual'))),
  },
  {
    title: "is the delegate that another namespace's VirtualService names",
    example: [istio('VirtualService', { http: [redirect] }, 'lent')],
    allows: ({ type, part }, causes) =>
      causesOfKind<VirtualService>(causes, 'VirtualService').some(
        ({ name, spec }) => name === 'lent' && spec.hosts.length === 0,
      ) &&
      type === 'RouteConfiguration' &&
      part.startsWith('bank.example.com'),
  },
  {
    title: 'selects gateways of other namespaces with a Gateway',
    code: 'selects-foreign-workloads',
    example: [
      istio('Gateway', {
        selector: { istio: 'ingressgateway' },
        servers: [{ port: http('http', 4444), hosts: ['*'] }],
      }),
    ],
    closedBy: { features: { gatewaysOfOwnNamespace: true } },
    allows: ({ isGateway, type }, causes) =>
      isGateway &&
      causesOfKind(causes, 'Gateway').length > 0 &&
      ['Listener', 'RouteConfiguration', 'Cluster', '*'].includes(type),
  },
  {
    title: 'attaches routes to a listener of the Gateway API that allows all namespaces',
    code: 'takes-routes-of-all-namespaces',
    isOwnersChoice: true,
    example: [
      {
        ...{ apiVersion: 'gateway.networking.k8s.io/v1', kind: 'HTTPRoute' },
        metadata: { name: 'attack', namespace: tenant, creationTimestamp: '2019-01-01T00:00:00Z' },
        spec: {
          parentRefs: [{ name: 'edge', namespace: 'istio-system', sectionName: 'open' }],
          hostnames: ['ledger.example.com'],
          rules: [{ filters: [{ type: 'RequestRedirect', requestRedirect: { hostname: 'mine.example.org' } }] }],
        },
      },
    ],
    closedBy: { allowedRoutes: 'Same' },
    allows: ({ victim, type, resource }, causes) =>
      victim === 'gateway of the Gateway API' &&
      causesOfKind(causes, 'HTTPRoute', 'GRPCRoute').length > 0 &&
      type === 'RouteConfiguration' &&
      resource === 'http.8000',
  },
  {
    title: 'serves hosts at the shared gateway with an Ingress',
    code: 'takes-every-host',
    example: [
      {
        ...{ apiVersion: 'networking.k8s.io/v1', kind: 'Ingress' },
        metadata: { name: 'attack', namespace: tenant, annotations: { 'kubernetes.io/ingress.class': 'istio' } },
        spec: {
          rules: [
            {
              http: {
                paths: [
                  { path: '/', pathType: 'Prefix', backend: { service: { name: 'mine', port: { number: 80 } } } },
                ],
              },
            },
          ],
        },
      },
    ],
    closedBy: { meshConfig: 'ingressControllerMode: "OFF"' },
    allows: (effect, causes) =>
      isFront(effect) &&
      causesOfKind(causes, 'Ingress').length > 0 &&
      ['Listener', 'RouteConfiguration', '*'].includes(effect.type),
  },
  {
    title: "becomes a gateway of a network with a Service's label",
    code: 'is-network-gateway',
    example: [
      {
        ...{ apiVersion: 'v1', kind: 'Service' },
        metadata: {
          ...{ name: 'attack', namespace: tenant },
          labels: { 'topology.istio.io/network': 'west' },
          annotations: { 'networking.istio.io/exportTo': '.' },
        },
        spec: { type: 'LoadBalancer', clusterIP: '10.96.66.1', ports: [{ name: 'tls', port: 15_443 }] },
        status: { loadBalancer: { ingress: [{ ip: '203.0.113.66' }] } },
      },
    ],
    allows: ({ type, change }, causes) =>
      type === 'ClusterLoadAssignment' &&
      change === 'changed' &&
      causesOfKind(causes, 'Service').some(({ labels }) => labels['topology.istio.io/network'] !== undefined),
  },
];
