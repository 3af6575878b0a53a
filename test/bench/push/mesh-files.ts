/**
 * The mesh of the push benchmark: each service has endpoints, a VirtualService and a DestinationRule, one object per
 * file. Changes apply to service 0. The texts are pure; {@link BenchMesh} writes them to a folder.
 */
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Source of services and endpoints: a ServiceEntry, or a Kubernetes Service with an EndpointSlice. */
export const meshFlavors = ['istio', 'kubernetes'] as const;
export type MeshFlavor = (typeof meshFlavors)[number];

export interface MeshSize {
  readonly services: number;
  /** Endpoints of each service. */
  readonly endpoints: number;
  readonly flavor: MeshFlavor;
  /** By default, the mesh has one namespace and only services. */
  readonly variety?: MeshVariety;
}

/** Objects other than services in real meshes, which make proxies' configurations differ. */
export interface MeshVariety {
  /** Number of namespaces of services and proxies; one is `default`. */
  readonly namespaces: number;
  /** Sidecar objects in each namespace: none, one that imports all namespaces, or one that imports only its own. */
  readonly sidecars: 'none' | 'all' | 'narrow';
  /** Services that are exported only to their own namespace. The changed service is not one of them. */
  readonly privateServices: 'none' | 'one' | 'every tenth';
  /** Number of ports of services, from 8080 upwards. A route configuration has the services of one port. */
  readonly ports: number;
  /** Whether half of the proxies have another version, which an EnvoyFilter matches. */
  readonly hasVersions: boolean;
  /** Number of HTTPS hosts of a gateway with an EnvoyFilter on its routes. A route change applies to one of them. 0: no gateway. */
  readonly gatewayHosts: number;
}

export const noVariety: MeshVariety = {
  namespaces: 1,
  sidecars: 'none',
  privateServices: 'none',
  ports: 1,
  hasVersions: false,
  gatewayHosts: 0,
};

/** Namespace of the service or proxy with this number. */
export const namespaceOf = (number: number, namespaces: number): string =>
  namespaces === 1 ? 'default' : `ns-${number % namespaces}`;

/** Default number of endpoints of each service. */
export const endpointsPerService = 10;

/**
 * Type of a change. The mark is the address of the first endpoint, a header's value in the first match, or the SNI of a
 * DestinationRule.
 */
export type MeshChange = 'endpoint' | 'route' | 'rule';

const padded = (number: number): string => String(number).padStart(5, '0');

export const serviceName = (number: number): string => `svc-${padded(number)}`;
export const hostOf = (number: number, { namespaces } = noVariety): string =>
  `${serviceName(number)}.${namespaceOf(number, namespaces)}.svc.cluster.local`;

/** An address of 12 to 14 bytes that no mesh of the benchmark contains. */
export const markOf = (number: number): string =>
  `172.${16 + (Math.floor(number / 40_000) % 16)}.${100 + (Math.floor(number / 200) % 100)}.${20 + (number % 200)}`;

const endpointAddress = (service: number, endpoint: number): string =>
  `10.${1 + Math.floor(service / 250)}.${service % 250}.${endpoint + 1}`;
const serviceAddress = (service: number): string => `10.250.${Math.floor(service / 250)}.${(service % 250) + 1}`;

export function serviceFiles(
  service: number,
  { endpoints, flavor, variety = noVariety }: Omit<MeshSize, 'services'>,
): Record<string, string> {
  const id = padded(service);
  return {
    ...(flavor === 'istio'
      ? { [`se-${id}.yaml`]: serviceEntry(service, endpoints, variety) }
      : {
          [`service-${id}.yaml`]: kubernetesService(service, variety),
          [`slice-${id}.yaml`]: endpointSlice(service, endpoints, variety),
        }),
    [`vs-${id}.yaml`]: virtualService(service, variety),
    [`dr-${id}.yaml`]: destinationRule(service, variety),
  };
}

/** The file that a change of service 0 rewrites. */
export function changedFile(change: MeshChange, mark: string, size: MeshSize): [string, string] {
  const { endpoints, flavor, variety = noVariety } = size;
  if (change === 'route') {
    return variety.gatewayHosts > 0
      ? [`gateway-vs-${padded(0)}.yaml`, gatewayRoute(0, size, mark)]
      : [`vs-${padded(0)}.yaml`, virtualService(0, variety, mark)];
  }
  if (change === 'rule') return [`dr-${padded(0)}.yaml`, destinationRule(0, variety, mark)];
  if (flavor === 'istio') return [`se-${padded(0)}.yaml`, serviceEntry(0, endpoints, variety, mark)];
  return [`slice-${padded(0)}.yaml`, endpointSlice(0, endpoints, variety, mark)];
}

/** Files about several services, by name. */
export function varietyFiles(size: MeshSize): Record<string, string> {
  const { variety = noVariety } = size;
  const { namespaces, sidecars, hasVersions, gatewayHosts } = variety;
  const files: Record<string, string> = {};
  for (let number = 0; number < namespaces && sidecars !== 'none'; number++) {
    files[`sidecar-${padded(number)}.yaml`] = sidecarObject(namespaceOf(number, namespaces), sidecars);
  }
  if (hasVersions) files['envoy-filter-version.yaml'] = envoyFilter('version', 'istio-system', versionPatch);
  if (gatewayHosts === 0) return files;
  files['gateway.yaml'] = gateway(gatewayHosts);
  files['envoy-filter-gateway.yaml'] = envoyFilter('gateway', gatewayNamespace, gatewayPatch);
  for (let host = 0; host < gatewayHosts; host++) files[`gateway-vs-${padded(host)}.yaml`] = gatewayRoute(host, size);
  return files;
}

export const gatewayNamespace = 'edge';
/** Version matched by the EnvoyFilter of `hasVersions`. */
export const patchedVersion = '1.27.0';

const versionPatch = `  - applyTo: CLUSTER
    match: {context: SIDECAR_OUTBOUND, proxy: {proxyVersion: '^1\\.27.*'}, cluster: {portNumber: 8080}}
    patch: {operation: MERGE, value: {connect_timeout: 3s}}
`;
const gatewayPatch = `  - applyTo: HTTP_ROUTE
    match: {context: GATEWAY}
    patch: {operation: MERGE, value: {request_headers_to_remove: [x-internal]}}
`;

function envoyFilter(name: string, namespace: string, patches: string): string {
  return `apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: ${name}, namespace: ${namespace}}
spec:
  configPatches:
${patches}`;
}

function sidecarObject(namespace: string, shows: 'all' | 'narrow'): string {
  return `apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: default, namespace: ${namespace}}
spec:
  egress:
  - hosts: ["${shows === 'all' ? '*/*' : './*'}"]
`;
}

const gatewayHost = (host: number): string => `host-${padded(host)}.example.com`;

function gateway(hosts: number): string {
  const server = (host: number): string => `  - port: {number: 443, name: https-${padded(host)}, protocol: HTTPS}
    hosts: ["${gatewayHost(host)}"]
    tls: {mode: SIMPLE, credentialName: cert-${padded(host)}}
`;
  return `apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: front, namespace: ${gatewayNamespace}}
spec:
  selector: {app: app}
  servers:
${Array.from({ length: hosts }, (_, host) => server(host)).join('')}`;
}

function gatewayRoute(host: number, { services, variety = noVariety }: MeshSize, mark?: string): string {
  const to = hostOf(host % services, variety);
  return `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: front-${padded(host)}, namespace: ${gatewayNamespace}}
spec:
  hosts: ["${gatewayHost(host)}"]
  gateways: [front]
  http:
${markedRoute(to, mark)}  - route:
    - destination: {host: ${to}}
`;
}

function isPrivate(service: number, { privateServices }: MeshVariety): boolean {
  if (privateServices === 'none') return false;
  return privateServices === 'one' ? service === 9 : service % 10 === 9;
}

const portOf = (service: number, { ports }: MeshVariety): number => 8080 + (service % ports);

function addressesOf(service: number, endpoints: number, mark?: string): string[] {
  return Array.from({ length: endpoints }, (_, i) =>
    i === 0 && mark !== undefined ? mark : endpointAddress(service, i),
  );
}

function serviceEntry(service: number, endpoints: number, variety: MeshVariety, mark?: string): string {
  return `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata:
  name: se-${padded(service)}
  namespace: ${namespaceOf(service, variety.namespaces)}
spec:
  hosts: ["${hostOf(service, variety)}"]
  addresses: ["${serviceAddress(service)}"]
  ports:
  - number: ${portOf(service, variety)}
    name: http
    protocol: HTTP
  location: MESH_INTERNAL
  resolution: STATIC${isPrivate(service, variety) ? "\n  exportTo: ['.']" : ''}
  endpoints:
${addressesOf(service, endpoints, mark)
  .map(
    (address, i) => `  - address: ${address}
    ports: {http: 8080}
    labels: {app: ${serviceName(service)}, version: ${i % 2 === 0 ? 'v1' : 'v2'}}
`,
  )
  .join('')}`;
}

function kubernetesService(service: number, variety: MeshVariety): string {
  return `apiVersion: v1
kind: Service
metadata:
  name: ${serviceName(service)}
  namespace: ${namespaceOf(service, variety.namespaces)}
spec:
  clusterIP: ${serviceAddress(service)}
  selector: {app: ${serviceName(service)}}
  ports:
  - port: ${portOf(service, variety)}
    name: http
    protocol: TCP
`;
}

function endpointSlice(service: number, endpoints: number, variety: MeshVariety, mark?: string): string {
  return `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: ${serviceName(service)}-1
  namespace: ${namespaceOf(service, variety.namespaces)}
  labels: {kubernetes.io/service-name: ${serviceName(service)}}
addressType: IPv4
ports:
- name: http
  port: 8080
  protocol: TCP
endpoints:
${addressesOf(service, endpoints, mark)
  .map((address) => `- addresses: ["${address}"]\n  conditions: {ready: true}\n`)
  .join('')}`;
}

function virtualService(service: number, variety: MeshVariety, mark?: string): string {
  return `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata:
  name: vs-${padded(service)}
  namespace: ${namespaceOf(service, variety.namespaces)}
spec:
  hosts: ["${hostOf(service, variety)}"]
  http:
${markedRoute(hostOf(service, variety), mark)}  - timeout: 15s
    retries: {attempts: 2, perTryTimeout: 5s, retryOn: "5xx,reset"}
    route:
    - destination: {host: ${hostOf(service, variety)}}
`;
}

/** A first route that contains the mark, if any. */
function markedRoute(host: string, mark: string | undefined): string {
  if (mark === undefined) return '';
  return `  - match:
    - headers:
        x-mark: {exact: "${mark}"}
    route:
    - destination: {host: ${host}}
`;
}

function destinationRule(service: number, variety: MeshVariety, mark?: string): string {
  return `apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata:
  name: dr-${padded(service)}
  namespace: ${namespaceOf(service, variety.namespaces)}
spec:
  host: ${hostOf(service, variety)}
  trafficPolicy:
    connectionPool: {http: {http2MaxRequests: 1000}}
    outlierDetection: {consecutive5xxErrors: 7, interval: 300s, baseEjectionTime: 900s}
${mark === undefined ? '' : `    tls: {mode: SIMPLE, sni: "${mark}"}\n`}`;
}

export class BenchMesh {
  readonly size: MeshSize;
  readonly configDirectory: string;
  readonly meshConfigFile: string;
  readonly #folder: string;

  /** @param folder folder to create */
  constructor(folder: string, size: MeshSize) {
    this.#folder = folder;
    this.size = size;
    this.configDirectory = join(folder, 'config');
    this.meshConfigFile = join(folder, 'mesh.yaml');
    mkdirSync(this.configDirectory, { recursive: true });
    writeFileSync(this.meshConfigFile, 'enableTracing: false\n');
    const write = (files: Record<string, string>): void => {
      for (const [name, text] of Object.entries(files)) writeFileSync(join(this.configDirectory, name), text);
    };
    for (let service = 0; service < size.services; service++) write(serviceFiles(service, size));
    write(varietyFiles(size));
  }

  /** Replaces the content of a file atomically, by a rename. */
  change(change: MeshChange, mark: string): void {
    const [name, text] = changedFile(change, mark, this.size);
    const next = join(this.#folder, 'next');
    writeFileSync(next, text);
    renameSync(next, join(this.configDirectory, name));
  }

  /** A shell command that makes the same change, with the mark in $MARK. */
  shellChange(change: MeshChange): string {
    const [name, text] = changedFile(change, placeholder, this.size);
    const template = join(this.#folder, `${change}.template`);
    const next = join(this.#folder, 'shell-next');
    writeFileSync(template, text);
    return `sed "s/${placeholder}/$MARK/" ${template} > ${next} && mv ${next} ${join(this.configDirectory, name)}`;
  }
}

const placeholder = '@@MARK@@';
