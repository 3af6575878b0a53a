/** What each proxy of the mesh should have: push context → generators → encoded resources (spec/discovery.md §6.3–§6.7). */

import * as E from 'fp-ts/lib/Either.js';
import type { Watches } from '../../../machines/discovery/xds/watch-record.ts';
import { workloadIdentityOf } from '../../identity/spiffe-id.ts';
import { unsupportedEnvoyText, whyNoWasm } from '../../model/node/envoy-build.ts';
import { parseNode } from '../../model/node/parse-node.ts';
import type { Proxy } from '../../model/node/proxy.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import { ShapeTable } from '../../model/proxy/shape-table.ts';
import { everyType, pushedTypeOf } from '../../model/proxy/types-to-push.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { grpcLimitations, maxCheckedNames, maxLimitations } from '../../networking/grpc/index.ts';
import { type Limitation, limitationText } from '../../networking/grpc/limitation.ts';
import { secretType } from '../../networking/index.ts';
import { withheldWasm } from '../../networking/patches/withheld-wasm.ts';
import { type CredentialReference, referencesOfCredential } from '../../networking/secrets/credential-references.ts';
import { permittedSecrets, withoutSecrets } from '../../networking/secrets/permitted-secrets.ts';
import { unenforced } from '../../networking/traffic/unenforced.ts';
import type { ObjectReading } from '../kubernetes/readers/referenced-objects.ts';
import type {
  NodeIdentity,
  NodeResources,
  Preparation,
  ResourceChange,
  ResourceSet,
  ResourceSource,
  ResponseCause,
} from '../xds/resource-source.ts';
import type { EncodedCache } from './cache/encoded-cache.ts';
import { ContextHistory } from './contexts/context-history.ts';
import type { Publication, PublishedContext } from './contexts/mesh-state.ts';
import { TypesToPushMemo } from './types-to-push-memo.ts';

export interface MeshResourcesOptions {
  /** What proxies are served from now; absent until there is something to serve. */
  readonly context: () => PushContext | undefined;
  readonly cache: EncodedCache;
  /** alias → cluster id (`--clusterAliases`). */
  readonly clusterAliases?: Readonly<Record<string, string>>;
  /** Who may have Secrets; absent: whoever is of their namespace. */
  readonly secretAccess?: SecretReaders;
  /** Is told which Secrets and ConfigMaps a node asks for and may have; of a node that has closed, none. */
  readonly credentialsWanted?: (node: object, references: readonly CredentialReference[]) => void;
  /** What is known of an object; absent: the objects of the context are all that there are. */
  readonly readingOf?: (reference: CredentialReference) => ObjectReading;
  /** Told of what clients reject, and of what they take after that. */
  readonly rejections?: RejectionListener;
  /** Notified of each response of a push, and of its result. */
  readonly responses?: ResponseListener;
  /** Told once of what a node (by its id) should do and cannot. */
  readonly warn?: (node: string, message: string) => void;
}

/** What the control plane knows of a Secret or ConfigMap for one client. `denied`: the client may not have it, so it is not looked up. */
export type CredentialReading = ObjectReading | 'denied';

/** Nothing is told of whoever rejects nothing. */
export interface RejectionListener {
  /** A client rejects what it was sent of a type. */
  rejected(node: MeshNode, typeUrl: string): void;
  /** The node has taken what it was sent of that type later. */
  accepted(node: MeshNode, typeUrl: string): void;
  left(node: MeshNode): void;
}

/** Responses of pushes, by client. Called for each response, so it must cost little. */
export interface ResponseListener {
  /** A response was sent because of a push. @param version of its push context */
  sent(node: MeshNode, typeUrl: string, version: string): void;
  /** @param version of the acknowledged response: the next one may have been sent before this call */
  acknowledged(node: MeshNode, typeUrl: string, version: string): void;
  rejected(node: MeshNode, typeUrl: string): void;
  left(node: MeshNode): void;
}

/** Whose proxies may have the Secrets of their namespaces. Others have none. */
export interface SecretReaders {
  /** A proxy of this service account (`namespace/name`) asks for some. */
  enter(account: string): SecretReader;
}

export interface SecretReader {
  readonly isAllowed: boolean;
  /** It is known whether it is allowed: until then a response without Secrets would say that there are none. */
  readonly isAnswered: boolean;
  /** The proxy is gone. */
  leave(): void;
}

/** Serves the nodes of the mesh. A node is served from one context until a push brings it to the next. */
export class MeshResources implements ResourceSource {
  readonly #options: MeshResourcesOptions;
  readonly #nodes = new Set<MeshNode>();
  readonly #shared: Shared = {
    shapes: new ShapeTable(),
    typesToPush: new TypesToPushMemo(),
    history: new ContextHistory(),
  };

  constructor(options: MeshResourcesOptions) {
    this.#options = options;
  }

  /** A context is there that all will be brought to; call it before anybody is told. */
  published(published: PublishedContext & Partial<Pick<Publication, 'configs'>>): void {
    this.#shared.history.add(published);
    this.#options.cache.carryOver(published);
  }

  open(node: NodeIdentity): { readonly error: string } | { readonly resources: NodeResources } {
    const context = this.#options.context();
    if (context === undefined) return { error: 'server is not ready to serve discovery information' };
    const parsed = parseNode(node, this.#options.clusterAliases);
    if (E.isLeft(parsed)) return { error: parsed.left };
    const about = { ...secretsOf(node, parsed.right), closed: () => this.#nodes.delete(opened) };
    const isOfNamespace = about.secretNamespace === parsed.right.configNamespace;
    const proxy = { ...parsed.right, ...(isOfNamespace && { isOfNamespace: true as const }) };
    const opened: MeshNode = new MeshNode(proxy, context, this.#shared, this.#options, about);
    this.#nodes.add(opened);
    return { resources: opened };
  }

  /** The connected nodes of this id, one for each stream. */
  nodesOf(id: string): readonly MeshNode[] {
    return [...this.#nodes].filter(({ proxy }) => proxy.id === id);
  }

  get nodes(): Iterable<MeshNode> {
    return this.#nodes;
  }
}

/** What all nodes share. */
interface Shared {
  readonly shapes: ShapeTable;
  readonly typesToPush: TypesToPushMemo;
  readonly history: ContextHistory;
}

/** Whose secrets a client may have: those of the namespace that it was found to be of. */
function secretsOf(
  { verifiedIdentity, secretsUnverified }: NodeIdentity,
  proxy: Proxy,
): Pick<AboutNode, 'secretNamespace' | 'account'> {
  if (secretsUnverified === true) return { secretNamespace: proxy.configNamespace, account: undefined };
  const { namespace, serviceAccount } = workloadIdentityOf(verifiedIdentity ?? '') ?? {};
  return { secretNamespace: namespace, account: namespace && `${namespace}/${serviceAccount}` };
}

interface AboutNode {
  /** Undefined: it may have no secrets. */
  readonly secretNamespace: string | undefined;
  /** Who it has shown to be; undefined: nobody was asked. */
  readonly account: string | undefined;
  readonly closed: () => void;
}

const noWatches: Watches = {};

/** Objects that a warning names. */
const maxNamedObjects = 5;

/** A connected node, and the context that it is served from. */
export class MeshNode implements NodeResources {
  readonly proxy: Proxy;
  readonly #options: MeshResourcesOptions;
  readonly #about: AboutNode;
  readonly #shared: Shared;
  #context: PushContext;
  #shape: ProxyShape;
  /** Since it has asked for a Secret. */
  #reader: SecretReader | undefined;
  /** Names of Secrets and ConfigMaps that it was last known to need. */
  #wantedCredentials: readonly string[] = [];
  #isClosed = false;
  #watches = (): Watches => noWatches;
  /** Types of which it rejects what it was sent last; undefined: it never did. */
  #rejected: Set<string> | undefined;
  /** What was said of it last. */
  #warning: string | undefined;
  /** Of a gRPC client or server: what gRPC does not do of the configuration of a type, by type URL. */
  readonly #limitations = new Map<string, { readonly text: string; readonly all: readonly Limitation[] }>();

  constructor(proxy: Proxy, context: PushContext, shared: Shared, options: MeshResourcesOptions, about: AboutNode) {
    this.proxy = proxy;
    this.#context = context;
    this.#options = options;
    this.#about = about;
    this.#shared = shared;
    this.#shape = shared.shapes.shapeOf(proxy, context);
    this.#warn();
  }

  /** Shared with all proxies that nothing tells apart. */
  get shape(): ProxyShape {
    return this.#shape;
  }

  get context(): PushContext {
    return this.#context;
  }

  /** Of a gRPC client or server: what of its configuration gRPC does not do, one text for each type of resource. */
  get limitations(): readonly string[] {
    return [...this.#limitations.values()].map(({ text }) => text).filter((text) => text !== '');
  }

  /** The same, with the objects. */
  get grpcLimitations(): readonly Limitation[] {
    return [...this.#limitations].flatMap(([typeUrl, { all }]) => {
      const watch = this.watches[typeUrl];
      // A client of the state of the world gets no response when it asks for less.
      return watch === undefined ? all : grpcLimitations(typeUrl, this.#shape, this.#context, watch.names);
    });
  }

  /** What its client watches, and has said to it. */
  get watches(): Watches {
    return this.#watches();
  }

  watched(watches: () => Watches): void {
    this.#watches = watches;
  }

  rejected(typeUrl: string): void {
    this.#rejected ??= new Set();
    this.#rejected.add(typeUrl);
    this.#options.rejections?.rejected(this, typeUrl);
    this.#options.responses?.rejected(this, typeUrl);
  }

  sent(typeUrl: string, version: string, cause: ResponseCause): void {
    if (cause === 'push') this.#options.responses?.sent(this, typeUrl, version);
  }

  acknowledged(typeUrl: string, version: string): void {
    this.#options.responses?.acknowledged(this, typeUrl, version);
    if (this.#rejected?.delete(typeUrl)) this.#options.rejections?.accepted(this, typeUrl);
  }

  get(typeUrl: string, names: readonly string[] | '*'): ResourceSet | undefined {
    // The answer of the API server is followed by a push.
    if (typeUrl === secretType && names !== '*' && this.#awaitsAccess(names)) return undefined;
    return this.#getFrom(this.#context, typeUrl, this.#shape, names);
  }

  prepare(typeUrl: string, names: readonly string[] | '*'): Preparation | undefined {
    const [context, shape] = [this.#context, this.#shape];
    const piece = this.#options.cache.prepare(context, typeUrl, shape, this.#permittedOf(typeUrl, names));
    return piece && { piece, result: () => this.#getFrom(context, typeUrl, shape, names) };
  }

  #getFrom(
    context: PushContext,
    typeUrl: string,
    shape: ProxyShape,
    names: readonly string[] | '*',
  ): ResourceSet | undefined {
    const resources = this.#options.cache.get(context, typeUrl, shape, this.#permittedOf(typeUrl, names));
    if (shape.proxyless && names !== '*') this.#reportLimitations(typeUrl, shape, context, names);
    return resources && { version: context.version, resources };
  }

  #permittedOf(typeUrl: string, names: readonly string[] | '*'): readonly string[] | '*' {
    if (names === '*') return names;
    if (typeUrl === secretType) this.#wantCredentials(this.#permittedByNamespace(names));
    return this.permitted(typeUrl, names);
  }

  /** Of its verified namespace, or granted to its Gateways; whether its account may read Secrets is checked separately. */
  #permittedByNamespace(names: readonly string[]): readonly string[] {
    const { type, configNamespace } = this.proxy;
    return permittedSecrets(names, {
      namespace: this.#about.secretNamespace,
      ownNamespace: configNamespace,
      ...(type === 'router' && { grants: this.#context.referenceGrants }),
    });
  }

  /** It asks for Secrets alone, and the API server has not yet said whether its account may have them. */
  #awaitsAccess(names: readonly string[]): boolean {
    this.#permittedOf(secretType, names);
    const ofNamespace = this.#permittedByNamespace(names);
    if (ofNamespace.length === 0 || withoutSecrets(ofNamespace).length > 0) return false;
    return this.#reader !== undefined && !this.#reader.isAnswered;
  }

  /** The names that the client may ask for: the same list for the same list. */
  permitted(typeUrl: string, names: readonly string[]): readonly string[] {
    if (typeUrl !== secretType) return names;
    const { account } = this.#about;
    const permitted = this.#permittedByNamespace(names);
    const { secretAccess } = this.#options;
    if (secretAccess === undefined || account === undefined) return permitted;
    const others = withoutSecrets(permitted);
    if (others.length === permitted.length) return permitted;
    if (this.#isClosed) return others;
    this.#reader ??= secretAccess.enter(account);
    return this.#reader.isAllowed ? permitted : others;
  }

  /** A Secret is read from the cluster only while something needs it. */
  #wantCredentials(wanted: readonly string[]): void {
    const { credentialsWanted } = this.#options;
    if (credentialsWanted === undefined || this.#isClosed || wanted === this.#wantedCredentials) return;
    this.#wantedCredentials = wanted;
    // A request may be about some of the names that the node watches.
    const watched = this.#permittedByNamespace(this.#watches()[secretType]?.names ?? []);
    const names = new Set([...wanted, ...watched]);
    const { configNamespace } = this.proxy;
    credentialsWanted(
      this,
      [...names].flatMap((name) => referencesOfCredential(name, configNamespace)),
    );
  }

  /** What is known of the object of a credential's resource name; `undefined`: what the context has. */
  credentialReading(name: string): CredentialReading | undefined {
    if (this.#permittedByNamespace([name]).length === 0) return 'denied';
    const { secretAccess, readingOf } = this.#options;
    const needsAccess = secretAccess !== undefined && this.#about.account !== undefined;
    if (needsAccess && withoutSecrets([name]).length === 0) {
      if (this.#reader?.isAnswered !== true) return 'unread';
      if (!this.#reader.isAllowed) return 'denied';
    }
    if (readingOf === undefined) return undefined;
    const readings = referencesOfCredential(name, this.proxy.configNamespace).map(readingOf);
    return (['unread', 'present', 'refused'] as const).find((one) => readings.includes(one)) ?? 'absent';
  }

  typesToPush(change: ResourceChange, watched: readonly string[]): readonly string[] {
    const before = { context: this.#context, shape: this.#shape };
    const context = this.#options.context() ?? before.context;
    if (context === before.context && !change.forced) return [];
    const shape = this.#shared.shapes.shapeOf(this.proxy, context, before.shape);
    this.#context = context;
    this.#shape = shape;
    this.#warn();
    // What an order says of changes may be less than what happened until now: the way here says it all.
    const types = change.forced
      ? everyType
      : this.#shared.typesToPush.typesToPush({ context, shape }, before, () => {
          const between = this.#shared.history.between(before.context, context);
          return between ?? { forced: false, changed: change.configs };
        });
    return watched.filter((typeUrl) => {
      const type = pushedTypeOf(typeUrl);
      return type === undefined ? types.size > 0 : types.has(type);
    });
  }

  #warn(): void {
    const reasons = [
      unsupportedEnvoyText(this.proxy.envoy?.version),
      this.#withheld(),
      unenforced(this.#shape, this.#context),
    ];
    const warning = reasons.filter((reason) => reason !== undefined).join('; ') || undefined;
    if (warning !== undefined && warning !== this.#warning) this.#options.warn?.(this.proxy.id, warning);
    this.#warning = warning;
  }

  /** A gRPC client reports nothing of what it ignores. */
  #reportLimitations(typeUrl: string, shape: ProxyShape, context: PushContext, names: readonly string[]): void {
    const all = grpcLimitations(typeUrl, shape, context, names);
    const more = all.length - maxNamedObjects;
    const unchecked = names.length - maxCheckedNames;
    const text = [
      ...all.slice(0, maxNamedObjects).map(limitationText),
      ...(more > 0 ? [`and ${all.length === maxLimitations ? 'at least ' : ''}${more} more`] : []),
      ...(unchecked > 0 ? [`${unchecked} resources are not checked, the limit is ${maxCheckedNames}`] : []),
    ].join('; ');
    const isKnown = this.#limitations.get(typeUrl)?.text === text;
    this.#limitations.set(typeUrl, { text, all });
    if (isKnown) return;
    if (text !== '') this.#options.warn?.(this.proxy.id, `gRPC without a proxy: ${text}`);
  }

  /** Bounded: a mesh may have thousands of plugins. */
  #withheld(): string | undefined {
    const keys = withheldWasm(this.#shape, this.#context);
    if (keys.length === 0) return undefined;
    const named = keys.slice(0, maxNamedObjects).map(({ kind, namespace, name }) => `${kind} ${namespace}/${name}`);
    const more = keys.length > named.length ? ` and ${keys.length - named.length} more` : '';
    return `Wasm code of ${named.join(', ')}${more} is not sent, and its failure policy applies: ${whyNoWasm(this.proxy.envoy)}`;
  }

  close(): void {
    this.#about.closed();
    this.#isClosed = true;
    if (this.#wantedCredentials.length > 0) this.#options.credentialsWanted?.(this, []);
    if (this.#rejected !== undefined) this.#options.rejections?.left(this);
    this.#options.responses?.left(this);
    this.#reader?.leave();
  }
}
