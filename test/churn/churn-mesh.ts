/** The mesh that changes all the time: texts of files, and what happens to them next. One seed drives all. Pure but for {@link ChurnMesh}. */
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Namespaces with services; in those called quiet nothing ever changes. */
export const busyNamespaces = Array.from({ length: 8 }, (_, i) => `busy-${i}`);
export const quietNamespaces = ['quiet-0', 'quiet-1'];
export const namespaces = [...busyNamespaces, ...quietNamespaces];
/** Of proxies that see all services. */
export const wideNamespace = 'wide';

export const changeKinds = ['endpoints', 'route', 'rule', 'leave', 'return'] as const;
export type ChangeKind = (typeof changeKinds)[number];

export interface Change {
  readonly kind: ChangeKind;
  readonly namespace: string;
  /** Of the namespace; from 0. */
  readonly service: number;
  readonly revision: number;
}

/** How often each kind comes, in percent. Services that leave and come are half as many each as routes. */
const shares: readonly (readonly [ChangeKind, number])[] = [
  ['endpoints', 50],
  ['route', 20],
  ['rule', 14],
  ['leave', 8],
  ['return', 8],
];

/** Namespaces take turns in this time: half of the busy ones change, the others rest. */
export const turnMs = 5_000;

/** Which namespaces change at a time after the start. */
export function activeNamespaces(elapsedMs: number): string[] {
  const turn = Math.floor(elapsedMs / turnMs);
  return busyNamespaces.filter((_, i) => (i + turn) % busyNamespaces.length < busyNamespaces.length / 2);
}

/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
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

/** What changes next, given what is gone. */
export class Changes {
  readonly #random: () => number;
  readonly #servicesEach: number;
  readonly #gone = new Map<string, Set<number>>(namespaces.map((namespace) => [namespace, new Set()]));
  #revision = 0;

  constructor(seed: number, servicesEach: number) {
    this.#random = randomOf(seed);
    this.#servicesEach = servicesEach;
  }

  next(elapsedMs: number): Change {
    const active = activeNamespaces(elapsedMs);
    const namespace = active[this.#below(active.length)]!;
    return this.#change(namespace, this.#kind(this.#gone.get(namespace)!));
  }

  /** A change of this kind; undefined when nobody is away who could return. */
  nextIn(namespace: string, kind: ChangeKind): Change | undefined {
    return kind === 'return' && this.#gone.get(namespace)!.size === 0 ? undefined : this.#change(namespace, kind);
  }

  #change(namespace: string, kind: ChangeKind): Change {
    const gone = this.#gone.get(namespace)!;
    const service = kind === 'return' ? [...gone][this.#below(gone.size)]! : this.#present(gone);
    if (kind === 'leave') gone.add(service);
    if (kind === 'return') gone.delete(service);
    return { kind, namespace, service, revision: ++this.#revision };
  }

  /** Nobody returns who has not left, and a tenth may be away at the most. */
  #kind(gone: ReadonlySet<number>): ChangeKind {
    let at = this.#random() * 100;
    const kind = shares.find(([, share]) => {
      at -= share;
      return at < 0;
    })![0];
    if (kind === 'return' && gone.size === 0) return 'endpoints';
    return kind === 'leave' && gone.size >= this.#servicesEach / 10 ? 'endpoints' : kind;
  }

  #present(gone: ReadonlySet<number>): number {
    for (;;) {
      const service = this.#below(this.#servicesEach);
      if (!gone.has(service)) return service;
    }
  }

  #below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }
}

const hostOf = (namespace: string, service: number): string => `svc-${service}.${namespace}.svc.cluster.local`;

/** Files of one service by name; the revision makes their content another. */
export function filesOf({ kind, namespace, service, revision }: Change): Record<string, string | undefined> {
  const file = (what: string): string => `${namespace}-${service}-${what}.yaml`;
  switch (kind) {
    case 'leave':
      return { [file('entry')]: undefined };
    case 'return':
    case 'endpoints':
      return { [file('entry')]: serviceEntry(namespace, service, revision) };
    case 'route':
      return { [file('route')]: virtualService(namespace, service, revision) };
    case 'rule':
      return { [file('rule')]: destinationRule(namespace, service, revision) };
  }
}

/** All files of the beginning. */
export function initialFiles(servicesEach: number): Record<string, string> {
  const files: Record<string, string> = {};
  for (const namespace of namespaces) {
    files[`${namespace}-sidecar.yaml`] = sidecarOf(namespace);
    for (let service = 0; service < servicesEach; service++) {
      for (const kind of ['endpoints', 'route', 'rule'] as const) {
        Object.assign(files, filesOf({ kind, namespace, service, revision: 0 }));
      }
    }
  }
  return files;
}

const header = (kind: string, name: string, namespace: string): string =>
  `apiVersion: networking.istio.io/v1\nkind: ${kind}\nmetadata: {name: ${name}, namespace: ${namespace}}\n`;

/** Proxies of the namespace see its own services and nothing else. */
const sidecarOf = (namespace: string): string =>
  `${header('Sidecar', 'default', namespace)}spec:\n  egress:\n  - hosts: ["./*"]\n`;

function serviceEntry(namespace: string, service: number, revision: number): string {
  const number = namespaces.indexOf(namespace);
  // Two endpoints to five: some come, some go, the last one moves.
  const endpoints = Array.from({ length: 2 + (revision % 4) }, (_, i) => `10.${number + 1}.${service % 250}.${i + 1}`);
  const moving = `10.${number + 20}.${Math.floor(revision / 250) % 250}.${(revision % 250) + 1}`;
  return `${header('ServiceEntry', `svc-${service}`, namespace)}spec:
  hosts: ["${hostOf(namespace, service)}"]
  addresses: ["10.${200 + number}.${Math.floor(service / 250)}.${(service % 250) + 1}"]
  ports: [{number: 8080, name: http, protocol: HTTP}]
  location: MESH_INTERNAL
  resolution: STATIC
  endpoints: [${[...endpoints, moving].map((address) => `{address: ${address}}`).join(', ')}]
`;
}

const virtualService = (namespace: string, service: number, revision: number): string =>
  `${header('VirtualService', `svc-${service}`, namespace)}spec:
  hosts: ["${hostOf(namespace, service)}"]
  http:
  - timeout: ${10 + revision}s
    route: [{destination: {host: ${hostOf(namespace, service)}}}]
`;

const destinationRule = (namespace: string, service: number, revision: number): string =>
  `${header('DestinationRule', `svc-${service}`, namespace)}spec:
  host: ${hostOf(namespace, service)}
  trafficPolicy: {connectionPool: {http: {http2MaxRequests: ${1_000 + revision}}}}
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

  apply(change: Change): void {
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
