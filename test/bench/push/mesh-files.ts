/**
 * The mesh of the push benchmark: for each service its endpoints, a VirtualService and a DestinationRule, one object a file.
 * Service 0 is the one that changes. The texts are pure; {@link BenchMesh} has them in a folder.
 */
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Where services and endpoints come from: a ServiceEntry, or a Kubernetes Service with an EndpointSlice. */
export const meshFlavors = ['istio', 'kubernetes'] as const;
export type MeshFlavor = (typeof meshFlavors)[number];

export interface MeshSize {
  readonly services: number;
  /** Of each service. */
  readonly endpoints: number;
  readonly flavor: MeshFlavor;
}

/** Endpoints of each service, unless a test wants less. */
export const endpointsEach = 10;

/** What a change writes: the mark stands for the first endpoint's address, or for a header's value in the first match. */
export type MeshChange = 'endpoint' | 'route';

const padded = (number: number): string => String(number).padStart(5, '0');

export const serviceName = (number: number): string => `svc-${padded(number)}`;
export const hostOf = (number: number): string => `${serviceName(number)}.default.svc.cluster.local`;

/** A text of 12 to 14 bytes that is an address and in no mesh of ours. */
export const markOf = (number: number): string =>
  `172.${16 + (Math.floor(number / 40_000) % 16)}.${100 + (Math.floor(number / 200) % 100)}.${20 + (number % 200)}`;

const endpointAddress = (service: number, endpoint: number): string =>
  `10.${1 + Math.floor(service / 250)}.${service % 250}.${endpoint + 1}`;
const serviceAddress = (service: number): string => `10.250.${Math.floor(service / 250)}.${(service % 250) + 1}`;

/** All files of a service, by name. */
export function serviceFiles(
  service: number,
  { endpoints, flavor }: Omit<MeshSize, 'services'>,
): Record<string, string> {
  const id = padded(service);
  return {
    ...(flavor === 'istio'
      ? { [`se-${id}.yaml`]: serviceEntry(service, endpoints) }
      : {
          [`service-${id}.yaml`]: kubernetesService(service),
          [`slice-${id}.yaml`]: endpointSlice(service, endpoints),
        }),
    [`vs-${id}.yaml`]: virtualService(service),
    [`dr-${id}.yaml`]: destinationRule(service),
  };
}

/** The file that a change of service 0 rewrites. */
export function changedFile(change: MeshChange, mark: string, { endpoints, flavor }: MeshSize): [string, string] {
  if (change === 'route') return [`vs-${padded(0)}.yaml`, virtualService(0, mark)];
  if (flavor === 'istio') return [`se-${padded(0)}.yaml`, serviceEntry(0, endpoints, mark)];
  return [`slice-${padded(0)}.yaml`, endpointSlice(0, endpoints, mark)];
}

function addressesOf(service: number, endpoints: number, mark?: string): string[] {
  return Array.from({ length: endpoints }, (_, i) =>
    i === 0 && mark !== undefined ? mark : endpointAddress(service, i),
  );
}

function serviceEntry(service: number, endpoints: number, mark?: string): string {
  return `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata:
  name: se-${padded(service)}
  namespace: default
spec:
  hosts: ["${hostOf(service)}"]
  addresses: ["${serviceAddress(service)}"]
  ports:
  - number: 8080
    name: http
    protocol: HTTP
  location: MESH_INTERNAL
  resolution: STATIC
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

function kubernetesService(service: number): string {
  return `apiVersion: v1
kind: Service
metadata:
  name: ${serviceName(service)}
  namespace: default
spec:
  clusterIP: ${serviceAddress(service)}
  selector: {app: ${serviceName(service)}}
  ports:
  - port: 8080
    name: http
    protocol: TCP
`;
}

function endpointSlice(service: number, endpoints: number, mark?: string): string {
  return `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: ${serviceName(service)}-1
  namespace: default
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

function virtualService(service: number, mark?: string): string {
  const marked =
    mark === undefined
      ? ''
      : `  - match:
    - headers:
        x-mark: {exact: "${mark}"}
    route:
    - destination: {host: ${hostOf(service)}}
`;
  return `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata:
  name: vs-${padded(service)}
  namespace: default
spec:
  hosts: ["${hostOf(service)}"]
  http:
${marked}  - timeout: 15s
    retries: {attempts: 2, perTryTimeout: 5s, retryOn: "5xx,reset"}
    route:
    - destination: {host: ${hostOf(service)}}
`;
}

function destinationRule(service: number): string {
  return `apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata:
  name: dr-${padded(service)}
  namespace: default
spec:
  host: ${hostOf(service)}
  trafficPolicy:
    connectionPool: {http: {http2MaxRequests: 1000}}
    outlierDetection: {consecutive5xxErrors: 7, interval: 300s, baseEjectionTime: 900s}
`;
}

export class BenchMesh {
  readonly size: MeshSize;
  readonly configDirectory: string;
  readonly meshConfigFile: string;
  readonly #folder: string;

  /** Writes all files. @param folder of its own; it is made */
  constructor(folder: string, size: MeshSize) {
    this.#folder = folder;
    this.size = size;
    this.configDirectory = join(folder, 'config');
    this.meshConfigFile = join(folder, 'mesh.yaml');
    mkdirSync(this.configDirectory, { recursive: true });
    writeFileSync(this.meshConfigFile, 'enableTracing: false\n');
    for (let service = 0; service < size.services; service++) {
      for (const [name, text] of Object.entries(serviceFiles(service, size))) {
        writeFileSync(join(this.configDirectory, name), text);
      }
    }
  }

  /** One file gets another content, at once: it is moved there. */
  change(change: MeshChange, mark: string): void {
    const [name, text] = changedFile(change, mark, this.size);
    const next = join(this.#folder, 'next');
    writeFileSync(next, text);
    renameSync(next, join(this.configDirectory, name));
  }

  /** A command of a shell that makes the same change, with the mark in $MARK. */
  shellChange(change: MeshChange): string {
    const [name, text] = changedFile(change, placeholder, this.size);
    const template = join(this.#folder, `${change}.template`);
    const next = join(this.#folder, 'shell-next');
    writeFileSync(template, text);
    return `sed "s/${placeholder}/$MARK/" ${template} > ${next} && mv ${next} ${join(this.configDirectory, name)}`;
  }
}

const placeholder = '@@MARK@@';
