/** The effect of an ads-connection: one gRPC stream and what the source has for its node. */
import type { ResponseOrder, StreamOrder, StreamReport } from '../../../machines/discovery/ads-protocol.ts';
import { clusterType, endpointType, healthType } from '../../../machines/discovery/ads-types.ts';
import { messageOf } from '../../runtime/errors.ts';
import type { Logger } from '../../runtime/log.ts';
import type { AdsObserver } from './ads-observer.ts';
import { type ReadRequest, readDeltaRequest, readNode, readSotwRequest } from './ads-request.ts';
import { encodeHead, type SharedBodies } from './ads-response.ts';
import { SentResources } from './ads-sent.ts';
import { type AdsCall, type AdsTransport, grpcTransport } from './ads-transport.ts';
import type { NodeIdentity, NodeResources, ResourceChange, ResourceSource } from './resource-source.ts';

/** A response waits while more than this of earlier ones has not left. */
const maxUnflushedBytes = 64 * 1024;

/** What all streams of a server share. */
export interface StreamSurroundings {
  readonly source: ResourceSource;
  readonly observer: AdsObserver;
  readonly logger: Logger;
  readonly bodies: SharedBodies;
  /** See AdsConnectionInput. */
  readonly resendsEndpoints: boolean;
  /** Unix time in milliseconds. */
  readonly now: () => number;
}

export interface StreamKind {
  readonly delta: boolean;
  /** The type of a separate service, for requests that do not say it; null on an aggregated stream. */
  readonly onlyType: string | null;
}

export class AdsStream {
  /** N of `ads-connection-N`. */
  readonly number: number;
  readonly kind: StreamKind;
  readonly peer: string;
  readonly connectedAt: number;
  /** Undefined until the client has told who it is. */
  identity: NodeIdentity | undefined;
  readonly #call: AdsCall;
  readonly #transport: AdsTransport;
  readonly #around: StreamSurroundings;
  readonly #sent = new Map<string, SentResources>();
  #report: (report: StreamReport) => void = () => {};
  #resources: NodeResources | undefined;
  /** Orders whose turn has not come: one a type at most, for the connection waits for the outcome of each. */
  #orders: ResponseOrder[] = [];
  #unflushedBytes = 0;
  #responses = 0;
  #isOver = false;

  constructor(number: number, call: AdsCall, kind: StreamKind, around: StreamSurroundings) {
    this.number = number;
    this.#call = call;
    this.kind = kind;
    this.#around = around;
    this.#transport = grpcTransport(call);
    this.peer = call.getPeer();
    this.connectedAt = around.now();
  }

  /** Reads from now on, and reports. */
  open(report: (report: StreamReport) => void): void {
    this.#report = report;
    const call = this.#call;
    if (call.cancelled) {
      this.#close('cancelled before it began');
      return;
    }
    call.on('data', (bytes: Buffer) => this.#contained(() => this.#take(bytes)));
    call.on('end', () => this.#tell({ type: 'peer.finished' }));
    call.on('finish', () => this.#close('ended by the server'));
    call.on('cancelled', () => this.#close('cancelled by the client'));
    call.on('error', (error: Error) => this.#close(messageOf(error)));
    call.on('close', () => this.#close('closed'));
  }

  execute(order: StreamOrder): void {
    this.#contained(() => {
      switch (order.type) {
        case 'responses.send':
          this.#orders.push(...order.orders);
          this.#sendDue();
          break;
        case 'request.judged':
          this.#judged(order.typeUrl, order.verdict, order.reason);
          break;
        case 'stream.end':
          this.#orders = [];
          this.#transport.end(order.code, order.reason);
          break;
      }
    });
  }

  /** Which of the watched types a change concerns. */
  concernedTypes(change: ResourceChange, watched: readonly string[]): string[] {
    if (this.#resources === undefined || watched.length === 0) return [];
    try {
      return [...this.#resources.concernedTypes(change, watched)];
    } catch (error) {
      this.#sourceFailed('', error);
      return [];
    }
  }

  /** The connection is over, however it came. */
  dispose(): void {
    this.#isOver = true;
    this.#orders = [];
    this.#sent.clear();
    // A client that does not read keeps its buffers until its TCP connection ends, unless the stream is cut.
    if (!this.#call.writableFinished) this.#call.end();
    const resources = this.#resources;
    this.#resources = undefined;
    if (resources !== undefined) this.#contained(() => resources.close());
  }

  // ---- requests

  #take(bytes: Buffer): void {
    if (this.#isOver) return;
    let read: ReadRequest;
    try {
      read = this.kind.delta ? readDeltaRequest(bytes) : readSotwRequest(bytes);
    } catch (error) {
      this.#tell({ type: 'request.unreadable', reason: messageOf(error) });
      return;
    }
    if (read.request.typeUrl === '' && this.kind.onlyType !== null) read.request.typeUrl = this.kind.onlyType;
    if (this.#resources === undefined && read.request.typeUrl !== healthType && !this.#introduce(read.node)) return;
    this.#tell({ type: 'request.received', request: read.request });
  }

  /** Learns from the first message who the client is. */
  #introduce(node: Uint8Array | undefined): boolean {
    let identity: NodeIdentity | undefined;
    try {
      identity = node === undefined ? undefined : readNode(node);
    } catch (error) {
      this.#tell({ type: 'request.unreadable', reason: messageOf(error) });
      return false;
    }
    if (identity === undefined || identity.id === '') {
      this.#tell({ type: 'node.missing' });
      return false;
    }
    const opened = this.#openSource(identity);
    if ('error' in opened) {
      this.#tell({ type: 'node.refused', reason: opened.error });
      return false;
    }
    this.identity = identity;
    this.#resources = opened.resources;
    this.#tell({ type: 'node.accepted', node: identity.id });
    return true;
  }

  #openSource(identity: NodeIdentity): ReturnType<ResourceSource['open']> {
    try {
      return this.#around.source.open(identity);
    } catch (error) {
      this.#sourceFailed('', error);
      return { error: `the node cannot be served: ${messageOf(error)}` };
    }
  }

  #judged(typeUrl: string, verdict: string, reason: string): void {
    const { observer, logger } = this.#around;
    const node = this.identity?.id ?? '';
    if (verdict === 'rejection') {
      observer.responseRejected?.(typeUrl, node, reason);
      logger.warn(`client rejects ${typeUrl}: ${reason}`, { node, peer: this.peer });
    } else if (verdict === 'stale') {
      observer.nonceExpired?.(typeUrl, node);
      logger.debug('request answers an earlier response, ignored', { node, typeUrl });
    } else {
      logger.warn('request neither answers nor asks for anything new, ignored', { node, typeUrl });
    }
  }

  // ---- responses

  /** Sends what was ordered, until the client has too much on its way. */
  #sendDue(): void {
    while (this.#orders.length > 0 && this.#unflushedBytes <= maxUnflushedBytes && !this.#isOver) {
      this.#answer(this.#orders.shift()!);
    }
  }

  #answer(order: ResponseOrder): void {
    const { typeUrl } = order;
    let set: ReturnType<NodeResources['get']>;
    try {
      set = this.#resources?.get(typeUrl, order.names);
    } catch (error) {
      this.#sourceFailed(typeUrl, error);
      this.#tell({ type: 'response.skipped', typeUrl, why: 'failed' });
      return;
    }
    if (set === undefined) {
      this.#tell({ type: 'response.skipped', typeUrl, why: 'not served' });
      return;
    }
    const selection = this.#sentOf(typeUrl).take(order, set);
    if (selection === undefined) {
      this.#tell({ type: 'response.skipped', typeUrl, why: 'unchanged' });
      return;
    }
    if (typeUrl === clusterType && this.#around.resendsEndpoints) this.#sentOf(endpointType).forget(selection.changed);
    // Of no other response of this process, so that it tells which one is meant wherever it turns up.
    const nonce = `${set.version}/${this.number}-${++this.#responses}`;
    const { removed } = selection;
    const own = encodeHead({ typeUrl, version: set.version, nonce, removed });
    const shared = this.#around.bodies.framesOf(typeUrl, selection.resources, this.kind.delta);
    const resources = 'size' in selection.resources ? selection.resources.size : selection.resources.length;
    const bytes = this.#write(own, shared);
    const cause = order.all || order.asked.length > 0 ? 'request' : 'push';
    this.#around.observer.responseSent?.(typeUrl, { cause, resources, bytes });
    const sentAt = this.#around.now();
    const version = set.version;
    this.#tell({ type: 'response.sent', typeUrl, nonce, version, resources, removed: removed.length, sentAt });
  }

  #write(own: Uint8Array, shared: readonly Uint8Array[]): number {
    // A write can be flushed before it returns.
    const length = own.length + shared.reduce((sum, frame) => sum + frame.length, 0);
    this.#unflushedBytes += length;
    return this.#transport.send({ own, shared }, () => {
      this.#unflushedBytes -= length;
      this.#contained(() => this.#sendDue());
    });
  }

  #sentOf(typeUrl: string): SentResources {
    let sent = this.#sent.get(typeUrl);
    if (sent === undefined) {
      sent = new SentResources(this.kind.delta);
      this.#sent.set(typeUrl, sent);
    }
    return sent;
  }

  #sourceFailed(typeUrl: string, error: unknown): void {
    const node = this.identity?.id ?? '';
    this.#around.observer.sourceFailed?.(typeUrl, node, error);
    this.#around.logger.error(`resources cannot be made: ${messageOf(error)}`, { node, typeUrl });
  }

  // ---- the end

  #close(reason: string): void {
    this.#tell({ type: 'stream.closed', reason });
  }

  #tell(report: StreamReport): void {
    if (this.#isOver) return;
    if (report.type === 'stream.closed') this.#isOver = true;
    this.#report(report);
  }

  /** A bug on one stream costs that stream. */
  #contained(deed: () => void): void {
    try {
      deed();
    } catch (error) {
      this.#around.logger.error('an xDS stream failed', { peer: this.peer, error: (error as Error).stack });
      this.#transport.end('UNAVAILABLE', 'internal error');
      this.#close(messageOf(error));
    }
  }
}
