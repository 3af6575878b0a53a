import * as E from 'fp-ts/lib/Either.js';
import type { Watches } from '../../../machines/discovery/xds/watch-record.ts';
import { workloadIdentityOf } from '../../identity/spiffe-id.ts';
import { unsupportedEnvoyText, wasmUnsupportedReason } from '../../model/node/envoy-build.ts';
import { parseNode } from '../../model/node/parse-node.ts';
import type { Proxy } from '../../model/node/proxy.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import { ShapeTable } from '../../model/proxy/shape-table.ts';
import { everyType, pushedTypeOf } from '../../model/proxy/types-to-push.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { grpcLimitations, maxCheckedNames, maxLimitations } from '../../networking/grpc/index.ts';
import { type Limitation, limitationText } from '../../networking/grpc/limitation.ts';
import { secretType } from '../../networking/index.ts';
import { withheldWasmKeys } from '../../networking/patches/withheld-wasm.ts';
import { type CredentialReference, referencesOfCredential } from '../../networking/secrets/credential-references.ts';
import { permittedSecrets, withoutSecrets } from '../../networking/secrets/permitted-secrets.ts';
import { unenforcedSettings } from '../../networking/traffic/unenforced.ts';
import type { ReferencedState } from '../kubernetes/readers/referenced-objects.ts';
import type {
  NodeIdentity,
  NodeResources,
  ResourceChange,
  ResourcePreparation,
  ResourceSet,
  ResourceSource,
  ResponseCause,
} from '../xds/resource-source.ts';
import type { EncodedCache } from './cache/encoded-cache.ts';
import { ContextHistory } from './contexts/context-history.ts';
import type { ContextPublication, Publication } from './contexts/mesh-state.ts';
import { keepsShape, TypesToPushMemo } from './types-to-push-memo.ts';

export interface MeshResourcesOptions {
  readonly context: () => PushContext | undefined;
  readonly cache: EncodedCache;
  /** `--clusterAliases` */
  readonly clusterAliases?: Readonly<Record<string, string>>;
  /** If absent, each client may receive the Secrets of its namespace. */
  readonly secretAccess?: SecretReaders;
  /** Called with Secrets and ConfigMaps that a node requests and may receive, and with none when the node is closed. */
  readonly onCredentialsNeeded?: (node: object, references: readonly CredentialReference[]) => void;
  /** If absent, only objects of the push context exist. */
  readonly readingOf?: (reference: CredentialReference) => ReferencedState;
  readonly rejections?: RejectionListener;
  readonly responses?: ResponseListener;
  readonly warn?: (node: string, message: string) => void;
}

/** `denied` means that the client may not receive the object, so it is not read. */
export type CredentialState = ReferencedState | 'denied';

/** Called only for clients that rejected a resource. */
export interface RejectionListener {
  onRejected(node: MeshNode, typeUrl: string): void;
  onAccepted(node: MeshNode, typeUrl: string): void;
  disconnected(node: MeshNode): void;
}

/** Called for each response of a push, so it must be fast. */
export interface ResponseListener {
  /** @param version of the push context */
  onSent(node: MeshNode, typeUrl: string, version: string, cause: ResponseCause): void;
  /** @param version of the acknowledged response; later ones may have been sent */
  onAcknowledged(node: MeshNode, typeUrl: string, version: string): void;
  onRejected(node: MeshNode, typeUrl: string): void;
  disconnected(node: MeshNode): void;
}

export interface SecretReaders {
  /** @param account `namespace/name` */
  addProxy(account: string): SecretReader;
}

export interface SecretReader {
  readonly isAllowed: boolean;
  /** Before the decision, a response would imply that there are no Secrets. */
  readonly isDecided: boolean;
  stopReading(): void;
}

/** Serves each node from one push context until a push moves it to the next. */
export class MeshResources implements ResourceSource {
  readonly #options: MeshResourcesOptions;
  readonly #nodes = new Set<MeshNode>();
  readonly #sharedTables: SharedTables = {
    shapes: new ShapeTable(),
    typesToPush: new TypesToPushMemo(),
    history: new ContextHistory(),
  };

  constructor(options: MeshResourcesOptions) {
    this.#options = options;
  }

  /** Must be called before streams are notified. */
  recordPublication(published: ContextPublication & Partial<Pick<Publication, 'configs'>>): void {
    this.#sharedTables.history.add(published);
    this.#options.cache.carryOverSets(published);
  }

  openNode(node: NodeIdentity): { readonly error: string } | { readonly resources: NodeResources } {
    const context = this.#options.context();
    if (context === undefined) return { error: 'server is not ready to serve discovery information' };
    const parsedNode = parseNode(node, this.#options.clusterAliases);
    if (E.isLeft(parsedNode)) return { error: parsedNode.left };
    const details = { ...secretOwnerOf(node, parsedNode.right), onClosed: () => this.#nodes.delete(openedNode) };
    const isSecretNamespace = details.secretNamespace === parsedNode.right.configNamespace;
    const proxy = { ...parsedNode.right, ...(isSecretNamespace && { isOfNamespace: true as const }) };
    const openedNode: MeshNode = new MeshNode(proxy, context, this.#sharedTables, this.#options, details);
    this.#nodes.add(openedNode);
    return { resources: openedNode };
  }

  /** Several nodes can have this ID, one for each stream. */
  nodesOf(id: string): readonly MeshNode[] {
    return [...this.#nodes].filter(({ proxy }) => proxy.id === id);
  }

  get nodes(): Iterable<MeshNode> {
    return this.#nodes;
  }
}

interface SharedTables {
  readonly shapes: ShapeTable;
  readonly typesToPush: TypesToPushMemo;
  readonly history: ContextHistory;
}

function secretOwnerOf(
  { verifiedIdentity, secretsUnverified }: NodeIdentity,
  proxy: Proxy,
): Pick<NodeDetails, 'secretNamespace' | 'account'> {
  if (secretsUnverified === true) return { secretNamespace: proxy.configNamespace, account: undefined };
  const { namespace, serviceAccount } = workloadIdentityOf(verifiedIdentity ?? '') ?? {};
  return { secretNamespace: namespace, account: namespace && `${namespace}/${serviceAccount}` };
}

interface NodeDetails {
  /** `undefined` if the node may not receive Secrets. */
  readonly secretNamespace: string | undefined;
  /** Verified; `undefined` if clients are not authenticated. */
  readonly account: string | undefined;
  readonly onClosed: () => void;
}

const noWatches: Watches = {};

const maxNamedObjects = 5;

export class MeshNode implements NodeResources {
  readonly proxy: Proxy;
  /** Version of the push context when the proxy connected. No push sent it to this connection. */
  readonly connectVersion: string;
  readonly #options: MeshResourcesOptions;
  readonly #details: NodeDetails;
  readonly #sharedTables: SharedTables;
  #context: PushContext;
  #shape: ProxyShape;
  #reader: SecretReader | undefined;
  #neededCredentials: readonly string[] = [];
  #isClosed = false;
  #watches = (): Watches => noWatches;
  #rejectedTypes: Set<string> | undefined;
  #warning: string | undefined;
  /** Features that a proxyless client ignores, by type URL. */
  readonly #limitations = new Map<string, { readonly text: string; readonly limitations: readonly Limitation[] }>();

  constructor(
    proxy: Proxy,
    context: PushContext,
    sharedTables: SharedTables,
    options: MeshResourcesOptions,
    details: NodeDetails,
  ) {
    this.proxy = proxy;
    this.connectVersion = context.version;
    this.#context = context;
    this.#options = options;
    this.#details = details;
    this.#sharedTables = sharedTables;
    this.#shape = sharedTables.shapes.shapeOf(proxy, context);
    this.#warn();
  }

  /** Verified namespace and service account; `undefined` if clients are not authenticated. */
  get account(): string | undefined {
    return this.#details.account;
  }

  /** Shape, which proxies with equal properties share. */
  get shape(): ProxyShape {
    return this.#shape;
  }

  get context(): PushContext {
    return this.#context;
  }

  get limitations(): readonly string[] {
    return [...this.#limitations.values()].map(({ text }) => text).filter((text) => text !== '');
  }

  get grpcLimitations(): readonly Limitation[] {
    return [...this.#limitations].flatMap(([typeUrl, { limitations }]) => {
      const watch = this.watches[typeUrl];
      // A SotW client receives no response when it unsubscribes from a name.
      return watch === undefined ? limitations : grpcLimitations(typeUrl, this.#shape, this.#context, watch.names);
    });
  }

  get watches(): Watches {
    return this.#watches();
  }

  provideWatches(watches: () => Watches): void {
    this.#watches = watches;
  }

  rejected(typeUrl: string): void {
    this.#rejectedTypes ??= new Set();
    this.#rejectedTypes.add(typeUrl);
    this.#options.rejections?.onRejected(this, typeUrl);
    this.#options.responses?.onRejected(this, typeUrl);
  }

  sent(typeUrl: string, version: string, cause: ResponseCause): void {
    this.#options.responses?.onSent(this, typeUrl, version, cause);
  }

  acknowledged(typeUrl: string, version: string): void {
    this.#options.responses?.onAcknowledged(this, typeUrl, version);
    if (this.#rejectedTypes?.delete(typeUrl)) this.#options.rejections?.onAccepted(this, typeUrl);
  }

  get(typeUrl: string, names: readonly string[] | '*'): ResourceSet | undefined {
    // When the API server has decided, a push sends the Secrets.
    if (typeUrl === secretType && names !== '*' && this.#isAwaitingAccess(names)) return undefined;
    return this.#getFrom(this.#context, typeUrl, this.#shape, names);
  }

  prepare(typeUrl: string, names: readonly string[] | '*'): ResourcePreparation | undefined {
    const [context, shape] = [this.#context, this.#shape];
    const preparedBuild = this.#options.cache.prepare(context, typeUrl, shape, this.#permittedOf(typeUrl, names));
    return preparedBuild && { runStep: preparedBuild, result: () => this.#getFrom(context, typeUrl, shape, names) };
  }

  #getFrom(
    context: PushContext,
    typeUrl: string,
    shape: ProxyShape,
    names: readonly string[] | '*',
  ): ResourceSet | undefined {
    const resources = this.#options.cache.get(context, typeUrl, shape, this.#permittedOf(typeUrl, names));
    if (shape.proxyless && names !== '*') this.#updateLimitations(typeUrl, shape, context, names);
    return resources && { version: context.version, resources };
  }

  #permittedOf(typeUrl: string, names: readonly string[] | '*'): readonly string[] | '*' {
    if (names === '*') return names;
    if (typeUrl === secretType) this.#reportNeededCredentials(this.#permittedByNamespace(names));
    return this.permittedNames(typeUrl, names);
  }

  /** Does not check the account's permission to read Secrets. */
  #permittedByNamespace(names: readonly string[]): readonly string[] {
    const { type, configNamespace } = this.proxy;
    return permittedSecrets(names, {
      namespace: this.#details.secretNamespace,
      ownNamespace: configNamespace,
      ...(type === 'router' && { grants: this.#context.referenceGrants }),
    });
  }

  #isAwaitingAccess(names: readonly string[]): boolean {
    this.#permittedOf(secretType, names);
    const permittedNames = this.#permittedByNamespace(names);
    if (permittedNames.length === 0 || withoutSecrets(permittedNames).length > 0) return false;
    return this.#reader !== undefined && !this.#reader.isDecided;
  }

  permittedNames(typeUrl: string, names: readonly string[]): readonly string[] {
    if (typeUrl !== secretType) return names;
    const { account } = this.#details;
    const permitted = this.#permittedByNamespace(names);
    const { secretAccess } = this.#options;
    if (secretAccess === undefined || account === undefined) return permitted;
    const otherNames = withoutSecrets(permitted);
    if (otherNames.length === permitted.length) return permitted;
    if (this.#isClosed) return otherNames;
    this.#reader ??= secretAccess.addProxy(account);
    return this.#reader.isAllowed ? permitted : otherNames;
  }

  /** Secrets are read from the cluster only while a node needs them. */
  #reportNeededCredentials(neededNames: readonly string[]): void {
    const { onCredentialsNeeded } = this.#options;
    if (onCredentialsNeeded === undefined || this.#isClosed || neededNames === this.#neededCredentials) return;
    this.#neededCredentials = neededNames;
    const watchedNames = this.#permittedByNamespace(this.#watches()[secretType]?.names ?? []);
    const names = new Set([...neededNames, ...watchedNames]);
    const { configNamespace } = this.proxy;
    onCredentialsNeeded(
      this,
      [...names].flatMap((name) => referencesOfCredential(name, configNamespace)),
    );
  }

  /** `undefined` if the object is as in the push context. */
  credentialReading(name: string): CredentialState | undefined {
    if (this.#permittedByNamespace([name]).length === 0) return 'denied';
    const { secretAccess, readingOf } = this.#options;
    const needsAccess = secretAccess !== undefined && this.#details.account !== undefined;
    if (needsAccess && withoutSecrets([name]).length === 0) {
      if (this.#reader?.isDecided !== true) return 'unread';
      if (!this.#reader.isAllowed) return 'denied';
    }
    if (readingOf === undefined) return undefined;
    const secretReadings = referencesOfCredential(name, this.proxy.configNamespace).map(readingOf);
    return (
      (['unread', 'present', 'refused'] as const).find((secretReading) => secretReadings.includes(secretReading)) ??
      'absent'
    );
  }

  typesToPush(change: ResourceChange, watchedTypes: readonly string[]): readonly string[] {
    const previous = { context: this.#context, shape: this.#shape };
    const context = this.#options.context() ?? previous.context;
    if (context === previous.context && !change.forced) return [];
    const { shapes, history, typesToPush } = this.#sharedTables;
    // The order may not contain all changes since the node's context.
    const pair = typesToPush.pairOf(context, previous.context, history, change.configs);
    this.#context = context;
    if (!keepsShape(pair, this.proxy.configNamespace)) {
      this.#shape = shapes.shapeOf(this.proxy, context, previous.shape);
      this.#warn();
    }
    const types = change.forced ? everyType : typesToPush.typesOf(pair, this.#shape, previous.shape);
    return watchedTypes.filter((typeUrl) => {
      const type = pushedTypeOf(typeUrl);
      return type === undefined ? types.size > 0 : types.has(type);
    });
  }

  #warn(): void {
    const reasons = [
      unsupportedEnvoyText(this.proxy.envoy?.version),
      this.#withheldWasmText(),
      unenforcedSettings(this.#shape, this.#context),
    ];
    const warning = reasons.filter((reason) => reason !== undefined).join('; ') || undefined;
    if (warning !== undefined && warning !== this.#warning) this.#options.warn?.(this.proxy.id, warning);
    this.#warning = warning;
  }

  /** gRPC itself does not report ignored features. */
  #updateLimitations(typeUrl: string, shape: ProxyShape, context: PushContext, names: readonly string[]): void {
    const allLimitations = grpcLimitations(typeUrl, shape, context, names);
    const omittedCount = allLimitations.length - maxNamedObjects;
    const uncheckedCount = names.length - maxCheckedNames;
    const text = [
      ...allLimitations.slice(0, maxNamedObjects).map(limitationText),
      ...(omittedCount > 0
        ? [`and ${allLimitations.length === maxLimitations ? 'at least ' : ''}${omittedCount} more`]
        : []),
      ...(uncheckedCount > 0 ? [`${uncheckedCount} resources are not checked, the limit is ${maxCheckedNames}`] : []),
    ].join('; ');
    const isUnchanged = this.#limitations.get(typeUrl)?.text === text;
    this.#limitations.set(typeUrl, { text, limitations: allLimitations });
    if (isUnchanged) return;
    if (text !== '') this.#options.warn?.(this.proxy.id, `gRPC without a proxy: ${text}`);
  }

  /** The length is limited, because a mesh can have thousands of plugins. */
  #withheldWasmText(): string | undefined {
    const keys = withheldWasmKeys(this.#shape, this.#context);
    if (keys.length === 0) return undefined;
    const objectNames = keys
      .slice(0, maxNamedObjects)
      .map(({ kind, namespace, name }) => `${kind} ${namespace}/${name}`);
    const omittedText = keys.length > objectNames.length ? ` and ${keys.length - objectNames.length} more` : '';
    return `Wasm code of ${objectNames.join(', ')}${omittedText} is not sent, and its failure policy applies: ${wasmUnsupportedReason(this.proxy.envoy)}`;
  }

  close(): void {
    this.#details.onClosed();
    this.#isClosed = true;
    if (this.#neededCredentials.length > 0) this.#options.onCredentialsNeeded?.(this, []);
    if (this.#rejectedTypes !== undefined) this.#options.rejections?.disconnected(this);
    this.#options.responses?.disconnected(this);
    this.#reader?.stopReading();
  }
}
