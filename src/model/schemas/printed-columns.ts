import type { KindName } from '../kinds/index.ts';

export interface PrinterColumn {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'date';
  readonly description: string;
  readonly jsonPath: string;
  /** 1 shows the column only with `-o wide`. */
  readonly priority?: 1;
}

export interface Appearance {
  readonly shortNames: readonly string[];
  readonly description: string;
  readonly columns: readonly PrinterColumn[];
}

const specPath = (field: string): string => `.spec.${field}`;

const column = (name: string, jsonPath: string, description: string): PrinterColumn => ({
  ...{ name, type: 'string', description, jsonPath },
});

const ageColumn: PrinterColumn = {
  name: 'Age',
  type: 'date',
  description: 'Time since the object was created',
  jsonPath: '.metadata.creationTimestamp',
};

const reconciledColumn: PrinterColumn = {
  name: 'Reconciled',
  type: 'string',
  description: 'Whether the affected proxies have the object',
  jsonPath: '.status.conditions[?(@.type=="Reconciled")].status',
  priority: 1,
};

const appearances: { readonly [K in KindName]?: Appearance } = {
  AuthorizationPolicy: {
    shortNames: ['ap'],
    description: 'Access control for workloads',
    columns: [column('Action', specPath('action'), 'Action for requests that match (default ALLOW)')],
  },
  DestinationRule: {
    shortNames: ['dr'],
    description: 'Traffic policy and subsets of a service',
    columns: [column('Host', specPath('host'), 'Service that the rule applies to')],
  },
  EnvoyFilter: { shortNames: [], description: 'Patches of the generated Envoy configuration', columns: [] },
  Gateway: {
    shortNames: ['gw'],
    description: 'Ports, hosts and TLS settings of gateways',
    columns: [],
  },
  PeerAuthentication: {
    shortNames: ['pa'],
    description: 'Mutual TLS mode of workloads',
    columns: [column('Mode', specPath('mtls.mode'), 'Mutual TLS mode; STRICT accepts mutual TLS only')],
  },
  ProxyConfig: { shortNames: [], description: 'Settings of proxies', columns: [] },
  RequestAuthentication: { shortNames: ['ra'], description: 'Accepted JWT issuers of workloads', columns: [] },
  ServiceEntry: {
    shortNames: ['se'],
    description: 'Service outside of the service registries',
    columns: [
      column('Hosts', specPath('hosts'), 'Hosts of the service'),
      column('Location', specPath('location'), 'Whether the service is part of the mesh (MESH_INTERNAL)'),
      column('Resolution', specPath('resolution'), 'How addresses of endpoints are resolved'),
    ],
  },
  Sidecar: { shortNames: [], description: 'Ports and reachable services of workloads', columns: [] },
  Telemetry: { shortNames: ['telemetry'], description: 'Traces, metrics and access logs of workloads', columns: [] },
  VirtualService: {
    shortNames: ['vs'],
    description: 'Routes of requests to hosts',
    columns: [
      column('Gateways', specPath('gateways'), 'Gateways with these routes (default: sidecars of the mesh)'),
      column('Hosts', specPath('hosts'), 'Hosts that the routes apply to'),
    ],
  },
  TrafficExtension: { shortNames: [], description: 'Wasm or Lua filter of workloads', columns: [] },
  WasmPlugin: { shortNames: [], description: 'WebAssembly filter of workloads', columns: [] },
  WorkloadEntry: {
    shortNames: ['we'],
    description: 'Workload outside of Kubernetes',
    columns: [column('Address', specPath('address'), 'Address of the workload')],
  },
  WorkloadGroup: {
    shortNames: ['wg'],
    description: 'Template for WorkloadEntries of workloads outside of Kubernetes',
    columns: [],
  },
};

/** Returns `undefined` for kinds whose CRD belongs to another project. */
export function appearanceOf(kind: KindName): Appearance | undefined {
  const appearance = appearances[kind];
  return appearance && { ...appearance, columns: [...appearance.columns, reconciledColumn, ageColumn] };
}
