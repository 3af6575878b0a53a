/** One proxy: its subscriptions, resources and responses. */
import { type ClientTls, GrpcStream } from './http2-stream.ts';
import { encodeDelta, encodeSotw } from './request.ts';
import type { ResourceBatch, ResourceBatches } from './resource-batches.ts';
import {
  areEqual,
  changeOf,
  coversNames,
  differingNames,
  type NameList,
  namesIn,
  noNames,
  noResources,
  type ResourceMap,
  sameList,
  withBatch,
  withoutNames,
} from './resource-maps.ts';
import { readResponse, type XdsResponse } from './response.ts';
import {
  followedBy,
  isWildcard,
  type Kind,
  kindOf,
  kinds,
  methodPath,
  typeUrlOf,
  type XdsProtocol,
} from './xds-types.ts';

export interface ReceivedResponse {
  readonly kind: Kind;
  readonly message: Buffer;
  /** Encoded records of the resources. */
  readonly resources: Buffer;
  readonly batch: ResourceBatch;
  readonly removed: readonly string[];
  readonly rejected: boolean;
  /** False if the proxy already had the same resources. */
  readonly isChanged: boolean;
  /** Names of resources that the response added, changed or removed. */
  readonly changedNames: readonly string[];
  /** Resources before the response. */
  readonly previousResources: ResourceMap;
}

export interface SidecarOptions {
  readonly port: number;
  /** See {@link GrpcStreamOptions}. */
  readonly localAddress?: string;
  /** See {@link GrpcStreamOptions}. */
  readonly tls?: ClientTls;
  /** Whether it resumes the TLS session of the previous stream. */
  readonly resumes?: boolean;
  /** See {@link GrpcStreamOptions}. */
  readonly dialMs?: number;
  readonly protocol: XdsProtocol;
  /** An encoded envoy.config.core.v3.Node. */
  readonly node: Buffer;
  /** Shared by sidecars of the same protocol. */
  readonly batches: ResourceBatches;
  /** Called after the acknowledgement was sent. */
  onResponse?(sidecar: Sidecar, response: ReceivedResponse): void;
  /** Called once per stream, when all requested resources were received. */
  onFull?(sidecar: Sidecar): void;
  onEnd?(sidecar: Sidecar, reason: string): void;
}

/** State of one resource type. */
interface Watch {
  /** Resources including those from earlier streams. */
  resources: ResourceMap;
  /** Subscribed names; empty for types with wildcard subscription. */
  names: NameList;
  version: string;
  /** Nonce of the last response on this stream. */
  nonce: string;
  isRequested: boolean;
  isReceived: boolean;
}

export class Sidecar {
  /** Whether all requested resources were received on this stream. */
  isFull = false;
  responses = 0;
  readonly #options: SidecarOptions;
  readonly #watches: Record<Kind, Watch>;
  #stream: GrpcStream | undefined;
  #hasSentNode = false;
  #bytesBefore = 0;
  #rejection: string | undefined;
  #session: Buffer | undefined;

  constructor(options: SidecarOptions) {
    this.#options = options;
    this.#watches = { CDS: emptyWatch(), EDS: emptyWatch(), LDS: emptyWatch(), RDS: emptyWatch() };
  }

  get isOpen(): boolean {
    return this.#stream !== undefined;
  }

  /** Bytes of messages of all streams. */
  get messageBytes(): number {
    return this.#bytesBefore + (this.#stream?.messageBytes ?? 0);
  }

  resources(kind: Kind): ResourceMap {
    return this.#watches[kind].resources;
  }

  names(kind: Kind): NameList {
    return this.#watches[kind].names;
  }

  /** Opens a stream; reports the resources of earlier streams. */
  open(): void {
    const { port, protocol, localAddress, tls, resumes, dialMs } = this.#options;
    this.isFull = false;
    this.#hasSentNode = false;
    for (const kind of kinds) Object.assign(this.#watches[kind], { nonce: '', isRequested: false, isReceived: false });
    const stream = new GrpcStream({
      port,
      ...(localAddress !== undefined && { localAddress }),
      ...(tls !== undefined && { tls }),
      ...(resumes === true && {
        onSession: (session) => {
          this.#session = session;
        },
        ...(this.#session !== undefined && { session: this.#session }),
      }),
      ...(dialMs !== undefined && { dialMs }),
      path: methodPath[protocol],
      onMessage: (message) => this.#onMessage(message),
      onEnd: (reason) => {
        if (this.#stream !== stream) return;
        this.#bytesBefore += stream.messageBytes;
        this.#stream = undefined;
        this.#options.onEnd?.(this, reason);
      },
    });
    this.#stream = stream;
    this.#request('CDS');
    // Envoy repeats its earlier subscriptions immediately.
    for (const kind of ['EDS', 'LDS', 'RDS'] as const) {
      const { resources, names } = this.#watches[kind];
      if (resources.size + names.sorted.length > 0) this.#request(kind);
    }
  }

  /** Closes the connection without a message. */
  close(): void {
    this.#stream?.close();
  }

  /** Stops reading until {@link resume}. */
  stall(): void {
    this.#stream?.pause();
  }

  resume(): void {
    this.#stream?.resume();
  }

  /** Rejects the next response. Its resources count as received. */
  rejectNext(reason: string): void {
    this.#rejection = reason;
  }

  #onMessage(message: Buffer): void {
    const response = readResponse(message, this.#options.protocol === 'delta');
    const kind = kindOf(response.typeUrl);
    if (kind === undefined) throw new Error(`a response of ${response.typeUrl}, which nobody asked for`);
    const watch = this.#watches[kind];
    const batch = this.#options.batches.of(kind, response.resources);
    const previous = watch.resources;
    watch.resources = this.#applyBatch(kind, previous, batch, response.removed);
    const isChanged = !watch.isReceived || !areEqual(previous, watch.resources);
    Object.assign(watch, { version: response.version, nonce: response.nonce, isReceived: true });
    this.responses++;
    const isRejected = this.#acknowledge(kind, response);
    this.#options.onResponse?.(this, {
      kind,
      message,
      resources: response.resources,
      batch,
      removed: response.removed,
      rejected: isRejected,
      isChanged,
      changedNames: differingNames(previous, watch.resources),
      previousResources: previous,
    });
    if (isWildcard(kind)) this.#followNames(followedBy[kind], namesIn(watch.resources));
    this.#advance();
  }

  #applyBatch(
    kind: Kind,
    previousResources: ResourceMap,
    batch: ResourceBatch,
    removedNames: readonly string[],
  ): ResourceMap {
    if (this.#options.protocol === 'sotw' && isWildcard(kind)) return batch;
    if (previousResources.size === 0) return batch;
    const updatedMap = withBatch(previousResources, batch);
    return removedNames.length === 0 ? updatedMap : withoutNames(updatedMap, sameList(removedNames));
  }

  /** @returns whether the response was rejected */
  #acknowledge(kind: Kind, { typeUrl, nonce, version }: XdsResponse): boolean {
    const reason = this.#rejection;
    this.#rejection = undefined;
    const error = reason === undefined ? {} : { error: reason };
    if (this.#options.protocol === 'delta') this.#stream?.send(encodeDelta({ typeUrl, nonce, ...error }));
    else {
      const names = isWildcard(kind) ? {} : { names: this.#watches[kind].names };
      this.#stream?.send(encodeSotw({ typeUrl, nonce, version, ...names, ...error }));
    }
    return reason !== undefined;
  }

  /** Subscribes to the names to which clusters or listeners now refer, and unsubscribes from others. */
  #followNames(kind: 'EDS' | 'RDS', names: NameList): void {
    const watch = this.#watches[kind];
    const { added, removed } = changeOf(watch.names, names);
    if (added.length + removed.length === 0) {
      if (!watch.isRequested && names.sorted.length > 0) this.#request(kind);
      return;
    }
    if (removed.length > 0) watch.resources = withoutNames(watch.resources, sameList(removed));
    const isFirst = !watch.isRequested;
    watch.names = names;
    if (isFirst || this.#options.protocol === 'sotw') this.#request(kind);
    else this.#stream?.send(encodeDelta({ typeUrl: typeUrlOf[kind], subscribe: added, unsubscribe: removed }));
  }

  /** Sends the first request of a stream for this type, or, in state of the world, one with changed names. */
  #request(kind: Kind): void {
    const watch = this.#watches[kind];
    const typeUrl = typeUrlOf[kind];
    const node = this.#hasSentNode ? {} : { node: this.#options.node };
    watch.isRequested = true;
    this.#hasSentNode = true;
    if (this.#options.protocol === 'sotw') {
      const names = isWildcard(kind) ? {} : { names: watch.names };
      this.#stream?.send(encodeSotw({ typeUrl, version: watch.version, nonce: watch.nonce, ...names, ...node }));
      return;
    }
    const subscribe = isWildcard(kind) ? [] : watch.names.sorted;
    this.#stream?.send(encodeDelta({ typeUrl, subscribe, initialVersions: watch.resources, ...node }));
  }

  /** Requests listeners when the clusters are warm; with the routes, all resources are complete. */
  #advance(): void {
    const { CDS, EDS, LDS, RDS } = this.#watches;
    const isWarm = CDS.isReceived && coversNames(EDS.resources, EDS.names);
    if (isWarm && !LDS.isRequested) this.#request('LDS');
    if (this.isFull || !isWarm || !LDS.isReceived || !coversNames(RDS.resources, RDS.names)) return;
    // A client that returns has the resources of its last stream before the server responds.
    if ([EDS, RDS].some(({ isRequested, isReceived }) => isRequested && !isReceived)) return;
    this.isFull = true;
    this.#options.onFull?.(this);
  }
}

const emptyWatch = (): Watch => ({
  resources: noResources,
  names: noNames,
  version: '',
  nonce: '',
  isRequested: false,
  isReceived: false,
});
