/** Proxies outside the tenant's namespace, and every byte that they receive. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fromBinary, toJson } from '@bufbuild/protobuf';
import { bootstrapPatchesName, bootstrapType } from '../../machines/discovery/xds/ads-types.ts';
import { typeRegistry } from '../../src/discovery/monitor/debug/type-registry.ts';
import type { MeshNode } from '../../src/discovery/push/mesh-resources.ts';
import type { EncodedResource } from '../../src/discovery/xds/resource-source.ts';
import { DeltaDiscoveryResponseSchema } from '../../src/gen/envoy/service/discovery/v3/discovery_pb.ts';
import { NameTableSchema } from '../../src/gen/istio/networking/nds/v1/nds_pb.ts';
import { type Config, configKeyText } from '../../src/model/config/config.ts';
import { readConfigFile } from '../../src/model/config/config-file.ts';
import { configSetOf } from '../../src/model/config/config-set.ts';
import { problemText } from '../../src/model/config/problem.ts';
import type { Features } from '../../src/model/mesh/features.ts';
import { translateIngresses } from '../../src/model/translation/ingress.ts';
import {
  clusterType,
  endpointType,
  extensionType,
  listenerType,
  nameTableType,
  routeType,
  secretType,
} from '../../src/networking/index.ts';
import { createAuthority } from '../certs/authority.ts';
import { givenMeshConfig } from '../fixtures/given-mesh.ts';
import { type GivenNodeOptions, GivenWorld } from '../fixtures/given-world.ts';

type Victim = GivenNodeOptions & { readonly name: string; readonly ip: string };

const certified = { ISTIO_VERSION: '1.30.0', WORKLOAD_CERTIFICATES: 'true' };

/** Each kind of served node, in each namespace that an object may target. */
const victims: readonly Victim[] = [
  {
    name: 'ledger',
    ip: '10.1.1.1',
    namespace: 'bank',
    labels: { app: 'ledger' },
    metadata: { ...certified, NETWORK: 'east' },
  },
  {
    name: 'vault',
    ip: '10.1.1.2',
    namespace: 'bank',
    labels: { app: 'vault' },
    metadata: { ...certified, DNS_CAPTURE: 'true', DNS_AUTO_ALLOCATE: 'true' },
  },
  {
    name: 'machine',
    ip: '10.1.1.9',
    namespace: 'bank',
    labels: { app: 'machine' },
    metadata: { INTERCEPTION_MODE: 'NONE', HTTP_PROXY_PORT: '15002' },
  },
  {
    name: 'cart',
    ip: '10.1.2.1',
    namespace: 'shop',
    labels: { app: 'cart' },
    metadata: { ...certified, INTERCEPTION_MODE: 'TPROXY', NODE_NAME: 'node-1' },
  },
  {
    name: 'narrow',
    ip: '10.1.2.2',
    namespace: 'shop',
    labels: { app: 'narrow' },
    metadata: { INSTANCE_IPS: '10.1.2.2,fd00::1' },
    locality: 'r1/z1',
  },
  {
    name: 'ingress gateway',
    ip: '10.1.9.1',
    namespace: 'istio-system',
    type: 'router',
    labels: { istio: 'ingressgateway', app: 'gateway' },
    metadata: certified,
    secrets: true,
  },
  {
    name: 'gateway of the Gateway API',
    ip: '10.1.9.2',
    namespace: 'istio-system',
    type: 'router',
    labels: { 'gateway.networking.k8s.io/gateway-name': 'edge' },
    metadata: certified,
    secrets: true,
  },
  {
    name: 'east-west gateway',
    ip: '10.1.9.3',
    namespace: 'istio-system',
    type: 'router',
    labels: { istio: 'eastwestgateway' },
    metadata: { NETWORK: 'west' },
  },
  {
    name: 'sidecar of the root namespace',
    ip: '10.1.9.4',
    namespace: 'istio-system',
    labels: { app: 'mine' },
    metadata: { DNS_CAPTURE: 'true' },
  },
];

/** Objects of all namespaces except the tenant's. */
export function victimConfigs(allowedRoutes: 'All' | 'Same' = 'All'): readonly Config[] {
  const { certificate, privateKey } = createAuthority().issue(['bank.example.com']);
  const base64 = (pem: string): string => Buffer.from(pem).toString('base64');
  const text = readFileSync(join(import.meta.dirname, 'victim-mesh.yaml'), 'utf8')
    .replace('FRONT_CERTIFICATE', base64(certificate))
    .replace('FRONT_KEY', base64(privateKey))
    .replace('ALLOWED_ROUTES', allowedRoutes);
  const { configs, problems } = readConfigFile('victim-mesh.yaml', text, { creationTimestamp: 1_700_000_000_000 });
  const errors = problems.filter(({ severity }) => severity === 'error');
  if (errors.length > 0) throw new Error(errors.map(problemText).join('\n'));
  return configs;
}

export interface IsolationSettings {
  /** YAML of a mesh configuration. */
  readonly meshConfig?: string;
  /** Namespaces from which a Gateway API listener accepts routes; default `All`. */
  readonly allowedRoutes?: 'All' | 'Same';
  /** Values of `--registries`; default Kubernetes. */
  readonly registries?: readonly string[];
  readonly features?: Partial<Features>;
}

/** All resources of a victim by type and name, in the order of sending. */
export type ServedResources = ReadonlyMap<string, EncodedResource>;

const all = [clusterType, listenerType, nameTableType];

/** The mesh of `victim-mesh.yaml` with its proxies; tenant objects are added and removed. */
export class VictimMesh {
  readonly configs: readonly Config[];
  readonly #settings: IsolationSettings;
  readonly #world: GivenWorld;
  readonly #nodes: readonly MeshNode[];
  /** Resources without any object of the tenant. */
  readonly baseline: readonly ServedResources[];
  /** Names by type: all names that any victim refers to in its baseline, and some that the tenant may try to claim. */
  readonly #names: Readonly<Record<string, readonly string[]>>;
  /** Keys of the tenant's current objects, and of the objects that Ingresses are translated to. */
  #tenantKeys: readonly string[] = [];

  constructor(settings: IsolationSettings = {}) {
    this.configs = victimConfigs(settings.allowedRoutes ?? 'All');
    this.#settings = settings;
    const { meshConfig, features, registries } = settings;
    this.#world = new GivenWorld([...this.configs], undefined, registries, features, meshConfig);
    this.#nodes = victims.map(({ name: _, ip, ...nodeOptions }) => this.#world.connect(ip, nodeOptions));
    const resources = this.#nodes.flatMap((node) =>
      all.flatMap((type) => [...node.get(type, '*')!.resources.values()]),
    );
    const referred = resources.map(decoded);
    const clusters = this.#nodes.flatMap((node) => [...node.get(clusterType, '*')!.resources.keys()]);
    this.#names = {
      [endpointType]: [...new Set(clusters)],
      [routeType]: [...new Set(valuesOf(referred, 'routeConfigName'))],
      [secretType]: [
        ...namesBeside(referred, 'sdsConfig'),
        ...['kubernetes://front', 'kubernetes://istio-system/front', 'kubernetes://own', 'kubernetes://mallory/own'],
      ],
      [extensionType]: [...namesBeside(referred, 'configDiscovery'), 'bank.guard', 'mallory.guard', 'later'],
      [bootstrapType]: [bootstrapPatchesName],
    };
    this.baseline = this.#nodes.map((node) => this.#readServed(node));
  }

  /** Resources of each victim with exactly these objects of the tenant. If keys are equal, the later object applies. */
  servedWith(objects: readonly Config[]): readonly ServedResources[] {
    const mesh = givenMeshConfig(this.#settings.meshConfig ?? '');
    const ingresses = translateIngresses(configSetOf([...this.configs, ...objects]), mesh, { domain: 'cluster.local' });
    const edits: Record<string, Config | undefined> = Object.fromEntries(
      this.#tenantKeys.map((key) => [key, undefined]),
    );
    for (const object of [...objects, ...ingresses.values()]) edits[configKeyText(object)] = object;
    this.#tenantKeys = Object.keys(edits).filter((key) => edits[key] !== undefined);
    const change = this.#world.change(edits);
    return this.#nodes.map((node) => {
      node.typesToPush(change, []);
      return this.#readServed(node);
    });
  }

  #readServed(node: MeshNode): ServedResources {
    const lists = [...all, endpointType, routeType, secretType, extensionType, bootstrapType].map((type) => {
      const { resources } = node.get(type, this.#names[type] ?? '*')!;
      return [...resources].map(
        ([name, resource]) => [`${type.slice(type.lastIndexOf('.') + 1)} ${name}`, resource] as const,
      );
    });
    return new Map(lists.flat());
  }
}

/** A changed resource of a victim. */
export interface VictimChange {
  readonly victim: string;
  readonly victimNamespace: string;
  readonly isGateway: boolean;
  /** `Cluster`, `Listener`, `RouteConfiguration`, … */
  readonly type: string;
  readonly name: string;
  readonly previous: unknown;
  readonly current: unknown;
}

/** Changed resources; a different order in a list is a change of the resource `*`. */
export function changesBetween(
  previous: readonly ServedResources[],
  current: readonly ServedResources[],
): readonly VictimChange[] {
  return victims.flatMap(({ name: victim, namespace = '', type: nodeType }, index) => {
    const [old, now] = [previous[index]!, current[index]!];
    const differingKeys = [...new Set([...old.keys(), ...now.keys()])].filter(
      (key) => old.get(key)?.version !== now.get(key)?.version,
    );
    const inOrder = (servedResources: ServedResources): string =>
      [...servedResources.keys()].filter((key) => old.has(key) && now.has(key)).join();
    const victimInfo = { victim, victimNamespace: namespace, isGateway: nodeType === 'router' };
    const changes = differingKeys.map((key): VictimChange => {
      const [type, ...name] = key.split(' ');
      const of = (resource: EncodedResource | undefined): unknown => resource && decoded(resource);
      return {
        ...victimInfo,
        type: type!,
        name: name.join(' '),
        previous: of(old.get(key)),
        current: of(now.get(key)),
      };
    });
    return inOrder(old) === inOrder(now)
      ? changes
      : [...changes, { ...victimInfo, type: '*', name: 'order', previous: inOrder(old), current: inOrder(now) }];
  });
}

/** Compares all bytes in order: the strictest comparison. */
export function sameServed(previous: readonly ServedResources[], current: readonly ServedResources[]): boolean {
  return previous.every((old, index) => {
    const now = [...current[index]!];
    return (
      old.size === now.length &&
      [...old].every(([key, { version }], at) => now[at]![0] === key && now[at]![1].version === version)
    );
  });
}

/** A resource as JSON. Its encoded form may consist of patches or blocks. */
function decoded({ deltaFrame, tailChunks }: EncodedResource): unknown {
  const { resources } = fromBinary(DeltaDiscoveryResponseSchema, Buffer.concat([deltaFrame, ...tailChunks]));
  const { typeUrl, value } = resources[0]!.resource!;
  const registry = typeRegistry();
  const schema =
    typeUrl === nameTableType ? NameTableSchema : registry.getMessage(typeUrl.slice(typeUrl.indexOf('/') + 1))!;
  return toJson(schema, fromBinary(schema, value), { registry });
}

/** Values of a field anywhere in a JSON value. */
function* valuesOf(json: unknown, field: string): Iterable<string> {
  if (typeof json !== 'object' || json === null) return;
  for (const [key, value] of Object.entries(json)) {
    if (key === field && typeof value === 'string') yield value;
    yield* valuesOf(value, field);
  }
}

/** Names next to a field anywhere in a JSON value, i.e. of resources that are fetched as the field specifies. */
function* namesBeside(json: unknown, field: string): Iterable<string> {
  if (typeof json !== 'object' || json === null) return;
  if (field in json && 'name' in json && typeof json.name === 'string') yield json.name;
  for (const value of Object.values(json)) yield* namesBeside(value, field);
}
