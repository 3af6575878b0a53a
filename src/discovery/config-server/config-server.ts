/**
 * Other control planes are xDS clients with `GENERATOR: api` in their node. They read all namespaces, so they must have an identity in the root
 * namespace.
 */
import type { DescMessage } from '@bufbuild/protobuf';
import { workloadIdentityOf } from '../../identity/spiffe-id.ts';
import type { Config } from '../../model/config/config.ts';
import type { KindName } from '../../model/kinds/index.ts';
import { appendCode, messageOf } from '../../runtime/errors.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { scalarText } from '../../runtime/scalar-text.ts';
import type { ConfigSnapshot } from '../config/snapshots/config-snapshot.ts';
import { hasRevision } from '../config/sources/object-revision.ts';
import { kindOfType, loadMessages } from '../config/xds/config-types.ts';
import type {
  EncodedResource,
  NodeIdentity,
  NodeResources,
  OpenedNode,
  ResourceChange,
  ResourceSet,
  ResourceSource,
} from '../xds/resource-source.ts';
import { encodeObject } from './encoded-object.ts';

export interface ConfigServerOptions {
  readonly configs: () => ConfigSnapshot;
  readonly rootNamespace: () => string;
  /** ENABLE_XDS_API_GENERATOR_AUTH. */
  readonly requiresIdentity: boolean;
  readonly push: (change: ResourceChange) => void;
  readonly log: Logger;
}

interface ServedKind {
  readonly configs: readonly Config[];
  readonly set: ResourceSet;
}

type EncodedResources = WeakMap<Config, EncodedResource | 'none'>;

const emptySet: ResourceSet = { version: 'empty', resources: new Map() };
const changedKey = 'chartpilot/config-over-xds';

export class ConfigServer {
  readonly #options: ConfigServerOptions;
  readonly #encodedByConfig: EncodedResources = new WeakMap();
  readonly #servedKinds = new Map<string, ServedKind>();
  readonly #clients = new Set<ConfigClient>();
  #messages: ReadonlyMap<KindName, DescMessage> | undefined;
  #version = 0;

  constructor(options: ConfigServerOptions) {
    this.#options = options;
  }

  /** Until the message types are loaded, clients must retry. */
  async load(): Promise<void> {
    this.#messages ??= await loadMessages();
  }

  /** The debounce delay for proxies does not apply. */
  pushChanges(touchedKeys: ReadonlySet<string>): void {
    if (this.#clients.size === 0 || touchedKeys.size === 0) return;
    this.#options.push({ version: `config-${++this.#version}`, forced: false, configs: new Set([changedKey]) });
  }

  withFallback(fallback: ResourceSource): ResourceSource {
    return {
      openNode: (node, onRejected) =>
        node.metadata.GENERATOR === 'api' ? this.#openNode(node) : fallback.openNode(node, onRejected),
    };
  }

  #openNode(node: NodeIdentity): OpenedNode {
    const rejection = this.#rejectionOf(node.identities ?? []);
    if (rejection !== undefined) return rejection;
    if (this.#messages === undefined) {
      return { code: 'UNAVAILABLE', error: appendCode('configuration is being prepared, retry', 'SERVER_NOT_READY') };
    }
    const revision = scalarText(node.metadata.ISTIO_REVISION);
    const client = new ConfigClient(
      (typeUrl) => this.#setOf(typeUrl, revision),
      () => this.#clients.delete(client),
    );
    this.#clients.add(client);
    return { resources: client };
  }

  #rejectionOf(
    identities: readonly string[],
  ): { readonly code: 'UNAUTHENTICATED' | 'PERMISSION_DENIED'; readonly error: string } | undefined {
    if (!this.#options.requiresIdentity) return undefined;
    const root = this.#options.rootNamespace();
    if (identities.length === 0) {
      const error = `configuration is served to identities of namespace ${root} only, over TLS with a certificate or token (ENABLE_XDS_API_GENERATOR_AUTH)`;
      return { code: 'UNAUTHENTICATED', error: appendCode(error, 'CLIENT_UNAUTHENTICATED') };
    }
    if (identities.some((identity) => workloadIdentityOf(identity)?.namespace === root)) return undefined;
    const error = `configuration is served to identities of namespace ${root} only, got ${identities.join(', ')}`;
    return { code: 'PERMISSION_DENIED', error: appendCode(error, 'CLIENT_FORBIDDEN') };
  }

  /** Returns the same set for equal objects. An unknown type has an empty set, so that clients do not wait for it. */
  #setOf(typeUrl: string, revision: string): ResourceSet {
    const kind = kindOfType(typeUrl);
    const schema = kind && this.#messages?.get(kind);
    if (kind === undefined || schema === undefined) return emptySet;
    const configs = this.#options.configs().set[kind] as readonly Config[];
    const key = `${kind} ${revision}`;
    const servedKind = this.#servedKinds.get(key);
    if (servedKind?.configs === configs) return servedKind.set;
    const resources = new Map<string, EncodedResource>();
    for (const config of configs) {
      if (revision !== '' && !hasRevision({ metadata: { labels: config.labels } }, revision)) continue;
      const encodedResource = this.#encode(config, schema);
      if (encodedResource !== 'none') resources.set(encodedResource.name, encodedResource);
    }
    const isUnchanged = servedKind !== undefined && isEqual(servedKind.set.resources, resources);
    const set = isUnchanged ? servedKind.set : { version: `${++this.#version}`, resources };
    if (this.#servedKinds.size >= maxServedKinds) this.#servedKinds.clear();
    this.#servedKinds.set(key, { configs, set });
    return set;
  }

  #encode(config: Config, schema: DescMessage): EncodedResource | 'none' {
    const cachedResource = this.#encodedByConfig.get(config);
    if (cachedResource !== undefined) return cachedResource;
    let encodedResource: EncodedResource | 'none' = 'none';
    try {
      encodedResource = encodeObject(config, schema) ?? 'none';
    } catch (error) {
      const object = `${config.kind} ${config.namespace}/${config.name}`;
      this.#options.log.warn('config-server.unencodable', { object, reason: messageOf(error) });
    }
    this.#encodedByConfig.set(config, encodedResource);
    return encodedResource;
  }
}

/** Limits the combinations of kind and revision, because a client may request any revision. */
const maxServedKinds = 256;

function isEqual(one: ReadonlyMap<string, EncodedResource>, other: ReadonlyMap<string, EncodedResource>): boolean {
  return one.size === other.size && [...one].every(([name, { version }]) => other.get(name)?.version === version);
}

class ConfigClient implements NodeResources {
  readonly #setOf: (typeUrl: string) => ResourceSet;
  readonly close: () => void;
  readonly #sentByType = new Map<string, ResourceSet>();

  constructor(setOf: (typeUrl: string) => ResourceSet, close: () => void) {
    this.#setOf = setOf;
    this.close = close;
  }

  get(typeUrl: string): ResourceSet {
    const set = this.#setOf(typeUrl);
    this.#sentByType.set(typeUrl, set);
    return set;
  }

  typesToPush(_: ResourceChange, watchedTypes: readonly string[]): readonly string[] {
    return watchedTypes.filter((typeUrl) => this.#setOf(typeUrl) !== this.#sentByType.get(typeUrl));
  }
}
