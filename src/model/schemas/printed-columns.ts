/** What `kubectl` shows of objects of a kind, and what it calls them besides. */
import type { KindName } from '../kinds/index.ts';

export interface PrinterColumn {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'date';
  readonly description: string;
  readonly jsonPath: string;
  /** 1: with `-o wide` only. */
  readonly priority?: 1;
}

export interface Appearance {
  readonly shortNames: readonly string[];
  /** What objects of the kind are for. */
  readonly description: string;
  readonly columns: readonly PrinterColumn[];
}

const of = (field: string): string => `.spec.${field}`;

const column = (name: string, jsonPath: string, description: string): PrinterColumn => ({
  ...{ name, type: 'string', description, jsonPath },
});

const age: PrinterColumn = {
  name: 'Age',
  type: 'date',
  description: 'Time since the object was created',
  jsonPath: '.metadata.creationTimestamp',
};

const reconciled: PrinterColumn = {
  name: 'Reconciled',
  type: 'string',
  description: 'Whether the proxies that the object concerns have it',
  jsonPath: '.status.conditions[?(@.type=="Reconciled")].status',
  priority: 1,
};

const appearances: { readonly [K in KindName]?: Appearance } = {
  AuthorizationPolicy: {
    shortNames: ['ap'],
    description: 'Who may do what at workloads',
    columns: [column('Action', of('action'), 'What happens to requests that match: ALLOW unless it is said')],
  },
  DestinationRule: {
    shortNames: ['dr'],
    description: 'How a service is reached, and what its subsets are',
    columns: [column('Host', of('host'), 'The service that the rule is for')],
  },
  EnvoyFilter: { shortNames: [], description: 'Patches of the configuration that Envoys get', columns: [] },
  Gateway: {
    shortNames: ['gw'],
    description: 'Ports and hosts that gateways at the edge of the mesh serve',
    columns: [],
  },
  PeerAuthentication: {
    shortNames: ['pa'],
    description: 'Whether workloads take mutual TLS only',
    columns: [column('Mode', of('mtls.mode'), 'STRICT: nothing else is taken')],
  },
  ProxyConfig: { shortNames: [], description: 'Settings of the proxies of workloads', columns: [] },
  RequestAuthentication: { shortNames: ['ra'], description: 'Which tokens workloads take', columns: [] },
  ServiceEntry: {
    shortNames: ['se'],
    description: 'A service that no registry knows',
    columns: [
      column('Hosts', of('hosts'), 'The hosts of the service'),
      column('Location', of('location'), 'MESH_INTERNAL: a part of the mesh'),
      column('Resolution', of('resolution'), 'How the addresses of its endpoints are found'),
    ],
  },
  Sidecar: { shortNames: [], description: 'What workloads listen on, and what they reach', columns: [] },
  Telemetry: { shortNames: ['telemetry'], description: 'Traces, metrics and access logs of workloads', columns: [] },
  VirtualService: {
    shortNames: ['vs'],
    description: 'Where requests to hosts go',
    columns: [
      column('Gateways', of('gateways'), 'Gateways that the routes are for; without any, the sidecars of the mesh'),
      column('Hosts', of('hosts'), 'The hosts that traffic is sent to'),
    ],
  },
  WasmPlugin: { shortNames: [], description: 'A WebAssembly module in the filter chains of workloads', columns: [] },
  WorkloadEntry: {
    shortNames: ['we'],
    description: 'A workload that is no pod',
    columns: [column('Address', of('address'), 'Where the workload is reached')],
  },
  WorkloadGroup: { shortNames: ['wg'], description: 'What workloads that are no pods have in common', columns: [] },
};

/** Undefined: the resources of the kind are not ours to define. */
export function appearanceOf(kind: KindName): Appearance | undefined {
  const found = appearances[kind];
  return found && { ...found, columns: [...found.columns, reconciled, age] };
}
