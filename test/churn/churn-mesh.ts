/** The constantly changing mesh: texts of files, and the sequence of their changes, all derived from one seed. Pure, except {@link ChurnMesh}. */
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type Affected,
  busyNamespaces,
  type ChangeKind,
  ChurnModel,
  edgeNamespace,
  hostOf,
  isOnGateway,
  isPrivateAtFirst,
  isRoutePrivate,
  isRulePrivate,
  namedService,
  namespaces,
  namespacesWithSidecarChanges,
  type ServiceId,
  visibilityOf,
} from './churn-model.ts';

export interface ChurnChange extends ServiceId {
  readonly kind: ChangeKind;
  readonly revision: number;
  /** Whether the service is exported only to its own namespace. */
  readonly isPrivate: boolean;
  /** Number of changes of the namespace's Sidecar object. */
  readonly sidecarRevision: number;
  readonly affected: Affected;
}

/** The fields that determine the content of files. */
export type FileChange = Omit<ChurnChange, 'affected'>;

/** Percentage of each type. Removals and additions of services are half as frequent as route changes. */
const shares: readonly (readonly [ChangeKind, number])[] = [
  ['endpoints', 46],
  ['route', 17],
  ['rule', 11],
  ['leave', 7],
  ['return', 7],
  ['export', 4],
  ['gateway route', 6],
  ['sidecar', 2],
];

/** Period of the rotation: half of the busy namespaces change, the others are idle. */
export const rotationMs = 5_000;

/** Number of namespaces that become active, and of those that become idle, in each period. */
const rotationStep = 5;

/** Namespaces that change at this time after the start. */
export function activeNamespaces(elapsedMs: number): string[] {
  const rotation = Math.floor(elapsedMs / rotationMs);
  return busyNamespaces.filter(
    (_, i) => (i + rotation * rotationStep) % busyNamespaces.length < busyNamespaces.length / 2,
  );
}

/** Deterministic numbers in [0, 1) (mulberry32). */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Draws the next change, given the removed services. */
export class Changes {
  readonly model: ChurnModel;
  readonly #random: () => number;
  readonly #servicesEach: number;
  /** Revision of each ServiceEntry by host. */
  readonly #entries = new Map<string, number>();
  #revision = 0;

  constructor(seed: number, servicesEach: number) {
    this.#random = randomOf(seed);
    this.#servicesEach = servicesEach;
    this.model = new ChurnModel(servicesEach);
  }

  next(elapsedMs: number): ChurnChange {
    const active = activeNamespaces(elapsedMs);
    const namespace = active[this.#drawBelow(active.length)]!;
    return this.#change(namespace, this.#kind(namespace));
  }

  /** `undefined` if the namespace has no object for this type of change. */
  nextIn(namespace: string, kind: ChangeKind): ChurnChange | undefined {
    return this.#isPossible(namespace, kind) ? this.#change(namespace, kind) : undefined;
  }

  #change(namespace: string, kind: ChangeKind): ChurnChange {
    const service = this.#serviceFor(namespace, kind);
    const id = { namespace, service };
    const affected = this.model.apply(kind, id);
    const host = hostOf(id);
    const revision = ++this.#revision;
    if (kind === 'endpoints' || kind === 'return') this.#entries.set(host, revision);
    return {
      ...id,
      kind,
      // Only the visibility changes.
      revision: kind === 'export' ? (this.#entries.get(host) ?? 0) : revision,
      isPrivate: this.model.isPrivate(id),
      sidecarRevision: this.model.sidecarRevision(namespace),
      affected,
    };
  }

  #kind(namespace: string): ChangeKind {
    let at = this.#random() * 100;
    const kind = shares.find(([, share]) => {
      at -= share;
      return at < 0;
    })![0];
    return this.#isPossible(namespace, kind) ? kind : 'endpoints';
  }

  /** Only removed services return, and at most a tenth of the services is removed. */
  #isPossible(namespace: string, kind: ChangeKind): boolean {
    const removedServices = this.model.removedServices(namespace);
    if (kind === 'return') return removedServices.size > 0;
    if (kind === 'leave') return removedServices.size < this.#servicesEach / 10;
    return kind !== 'sidecar' || namespacesWithSidecarChanges.includes(namespace);
  }

  #serviceFor(namespace: string, kind: ChangeKind): number {
    const removedServices = this.model.removedServices(namespace);
    if (kind === 'return') return [...removedServices][this.#drawBelow(removedServices.size)]!;
    if (kind === 'gateway route') return 4 * this.#drawBelow(Math.ceil(this.#servicesEach / 4));
    return this.#drawPresentService(removedServices);
  }

  #drawPresentService(removedServices: ReadonlySet<number>): number {
    for (;;) {
      const service = this.#drawBelow(this.#servicesEach);
      if (!removedServices.has(service)) return service;
    }
  }

  #drawBelow(limit: number): number {
    return Math.floor(this.#random() * limit);
  }
}

/** Files of a service or namespace, by name. The revision determines their content. */
export function filesOf(change: FileChange): Record<string, string | undefined> {
  const { kind, namespace, service, sidecarRevision } = change;
  const file = (suffix: string): string => `${namespace}-${service}-${suffix}.yaml`;
  switch (kind) {
    case 'leave':
      return { [file('entry')]: undefined };
    case 'return':
    case 'endpoints':
    case 'export':
      return { [file('entry')]: serviceEntry(change) };
    case 'route':
      return { [file('route')]: virtualService(change) };
    case 'rule':
      return { [file('rule')]: destinationRule(change) };
    case 'gateway route':
      return { [file('gateway-route')]: gatewayRoute(change) };
    case 'sidecar': {
      const text = sidecarOf(namespace, sidecarRevision);
      return text === undefined ? {} : { [`${namespace}-sidecar.yaml`]: text };
    }
  }
}

export function initialFiles(servicesEach: number): Record<string, string> {
  const files: Record<string, string> = { 'gateway.yaml': gateway };
  for (const namespace of namespaces) {
    for (let service = 0; service < servicesEach; service++) {
      const first = { namespace, service, revision: 0, sidecarRevision: 0, isPrivate: isPrivateAtFirst(service) };
      const kinds = [
        ...(['endpoints', 'route', 'rule'] as const),
        ...(isOnGateway(service) ? (['gateway route'] as const) : []),
        ...(service === 0 ? (['sidecar'] as const) : []),
      ];
      for (const kind of kinds) Object.assign(files, filesOf({ ...first, kind }));
    }
  }
  return files;
}

const header = (kind: string, name: string, namespace: string): string =>
  `apiVersion: networking.istio.io/v1\nkind: ${kind}\nmetadata: {name: ${name}, namespace: ${namespace}}\n`;

const privateExport = "  exportTo: ['.']\n";

/**
 * `undefined` for a namespace without a Sidecar object. Namespaces that import everything alternate between an object
 * and none.
 */
function sidecarOf(namespace: string, rotation: number): string | undefined {
  const shape = visibilityOf(namespace, rotation);
  const hosts = {
    all: () => ['*/*'],
    own: () => ['./*'],
    neighbour: (of: number) => ['./*', `${namespaces[of]}/*`],
    'one service': (of: number) => [
      './*',
      `${namespaces[of]}/${hostOf({ namespace: namespaces[of]!, service: namedService })}`,
    ],
  }[shape.sees]('of' in shape ? shape.of : 0);
  if (shape.sees === 'all' && namespaces.indexOf(namespace) % 2 === 0) return undefined;
  return `${header('Sidecar', 'default', namespace)}spec:\n  egress:\n  - hosts: ${JSON.stringify(hosts)}\n`;
}

const gateway = `${header('Gateway', 'front', edgeNamespace)}spec:
  selector: {app: app}
  servers:
  - port: {number: 8080, name: http, protocol: HTTP}
    hosts: ["*/*.example.com"]
`;

function serviceEntry({ namespace, service, revision, isPrivate }: FileChange): string {
  const number = namespaces.indexOf(namespace);
  // Between two and five endpoints: the number changes, and the last address moves.
  const endpoints = Array.from({ length: 2 + (revision % 4) }, (_, i) => `10.${number + 1}.${service % 250}.${i + 1}`);
  const moving = `10.${number + 60}.${Math.floor(revision / 250) % 250}.${(revision % 250) + 1}`;
  return `${header('ServiceEntry', `svc-${service}`, namespace)}spec:
  hosts: ["${hostOf({ namespace, service })}"]
  addresses: ["10.${200 + number}.${Math.floor(service / 250)}.${(service % 250) + 1}"]
  ports: [{number: 8080, name: http, protocol: HTTP}]
  location: MESH_INTERNAL
  resolution: STATIC
${isPrivate ? privateExport : ''}  endpoints: [${[...endpoints, moving].map((address) => `{address: ${address}}`).join(', ')}]
`;
}

const virtualService = ({ namespace, service, revision }: FileChange): string =>
  `${header('VirtualService', `svc-${service}`, namespace)}spec:
  hosts: ["${hostOf({ namespace, service })}"]
${isRoutePrivate(service) ? privateExport : ''}  http:
  - timeout: ${10 + revision}s
    route: [{destination: {host: ${hostOf({ namespace, service })}}}]
`;

const destinationRule = ({ namespace, service, revision }: FileChange): string =>
  `${header('DestinationRule', `svc-${service}`, namespace)}spec:
  host: ${hostOf({ namespace, service })}
${isRulePrivate(service) ? privateExport : ''}  trafficPolicy: {connectionPool: {http: {http2MaxRequests: ${1_000 + revision}}}}
`;

const gatewayRoute = ({ namespace, service, revision }: FileChange): string =>
  `${header('VirtualService', `front-${service}`, namespace)}spec:
  hosts: ["front-${service}-${namespace}.example.com"]
  gateways: [${edgeNamespace}/front]
  http:
  - timeout: ${10 + revision}s
    route: [{destination: {host: ${hostOf({ namespace, service })}, port: {number: 8080}}}]
`;

export class ChurnMesh {
  readonly configDirectory: string;
  readonly meshConfigFile: string;
  readonly #root: string;

  constructor(root: string, servicesEach: number) {
    this.#root = root;
    this.configDirectory = join(root, 'config');
    this.meshConfigFile = join(root, 'mesh.yaml');
    mkdirSync(this.configDirectory);
    writeFileSync(this.meshConfigFile, 'enableTracing: false\n');
    for (const [name, text] of Object.entries(initialFiles(servicesEach))) {
      writeFileSync(join(this.configDirectory, name), text);
    }
  }

  apply(change: FileChange): void {
    for (const [name, text] of Object.entries(filesOf(change))) {
      const file = join(this.configDirectory, name);
      if (text === undefined) rmSync(file);
      else {
        const next = join(this.#root, 'next');
        writeFileSync(next, text);
        renameSync(next, file);
      }
    }
  }
}
