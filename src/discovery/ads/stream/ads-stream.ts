/** The effect of an ads-connection: one gRPC stream and what the source has for its node. */

import { isOfExchange, tooManyNames } from '../../../../machines/discovery/ads/ads-exchange.ts';
import type {
  AdsRequest,
  PushToClient,
  StreamOrder,
  StreamReport,
} from '../../../../machines/discovery/ads/ads-protocol.ts';
import { healthType, proxyConfigType } from '../../../../machines/discovery/ads/ads-types.ts';
import { isSubscribed, type Watches } from '../../../../machines/discovery/ads/ads-watch.ts';
import { maxRetainedClusters } from '../../../../machines/discovery/ads/cluster-removal.ts';
import { messageOf } from '../../../runtime/errors.ts';
import { type FaultOwner, onBehalfOf } from '../../../runtime/fences/fault-owner.ts';
import { ownValue } from '../../../runtime/json-object.ts';
import { maxLaterNodeBytes, maxNodeBytes, maxNodeIdLength } from '../ads-limits.ts';
import { type Authenticator, authenticate } from '../authentication.ts';
import { authorize } from '../authorization.ts';
import { type ReadRequest, RequestReader, readNode } from '../requests/ads-request.ts';
import { KnownRuns, omittedFrom } from '../requests/known-runs.ts';
import type { RequestIntake } from '../requests/request-intake.ts';
import type { NodeIdentity, NodeResources, Refused, ResourceChange, ResourceSource } from '../resource-source.ts';
import { AdsResponder } from '../responses/ads-responder.ts';
import { AdsExchange } from './ads-exchange.ts';
import { type AdsCall, type AdsTransport, peerOf, replaceDecoder, transportOf } from './ads-transport.ts';
import { shortened } from './client-text.ts';
import { RepeatedLines } from './repeated-lines.ts';
import type { StreamSurroundings } from './stream-surroundings.ts';

/** How strangers are received on the port that a stream came in by. */
export interface StreamSecurity {
  /** The port has TLS. */
  readonly isSecure: boolean;
  /** Whom to ask who the client is. */
  readonly authenticators: readonly Authenticator[];
  /** Whether an identity must be one of the node's own. */
  readonly checksIdentity: boolean;
}

export const plaintext: StreamSecurity = { isSecure: false, authenticators: [], checksIdentity: false };

export interface StreamKind {
  /** `/package.Service/Method`. */
  readonly path: string;
  readonly delta: boolean;
  /** The type of a separate service, for requests that do not say it; null on an aggregated stream. */
  readonly onlyType: string | null;
}

export interface IncomingStream {
  readonly call: AdsCall;
  /** Takes the stream's requests, of which the first may have been looked at. */
  readonly intake: RequestIntake;
  readonly kind: StreamKind;
}

/** Whom a stream tells what. */
export interface StreamListener {
  /** A report for the stream's chart. */
  report(report: StreamReport): void;
  /** An order for the stream's chart, in the server's name: what it is told of a push where people want to see all. */
  pushed(order: PushToClient): void;
  /** The client has answered, and has acknowledged something by now. */
  acknowledged(): void;
}

const nobody: StreamListener = { report() {}, pushed() {}, acknowledged() {} };

/** A client whose node is known, and what there is for it. */
interface Served {
  readonly node: NodeIdentity;
  readonly resources: NodeResources;
}

/**
 * How far a stream is. `client`: whom it serves, undefined before that is known; it is served until the stream is disposed of,
 * because its last responses are still on their way. `code`: with what the server ended it, undefined where it did not.
 */
type Life =
  /** Nobody knows yet who the client is. */
  | { readonly is: 'arriving' }
  /** The client may speak, and has not said yet which node it is. */
  | { readonly is: 'admitted'; readonly identities: readonly string[] }
  | { readonly is: 'serving'; readonly client: Served }
  /** Ended by the server; the client may not have heard of it. */
  | { readonly is: 'ending'; readonly client: Served | undefined; readonly code: string }
  /** The client is gone; the connection will hear of it in its turn. */
  | { readonly is: 'gone'; readonly client: Served | undefined; readonly code: string | undefined }
  /** The connection was told that it is over. */
  | { readonly is: 'over'; readonly client: Served | undefined; readonly code: string | undefined }
  /** What was kept for it is given back. */
  | { readonly is: 'disposed'; readonly node: NodeIdentity | undefined };

const clientOf = (life: Life): Served | undefined => ('client' in life ? life.client : undefined);
const codeOf = (life: Life): string | undefined => ('code' in life ? life.code : undefined);

export class AdsStream {
  /** N of `ads-connection-N`. */
  readonly number: number;
  readonly kind: StreamKind;
  readonly peer: string;
  readonly connectedAt: number;
  readonly responder: AdsResponder;
  readonly #call: AdsCall;
  readonly #transport: AdsTransport;
  readonly #around: StreamSurroundings;
  readonly #reader: RequestReader;
  readonly #intake: RequestIntake;
  /** What the client brings about again and again. */
  readonly #lines: RepeatedLines;
  readonly #security: StreamSecurity;
  #life: Life = { is: 'arriving' };
  #listener = nobody;
  readonly #exchange: AdsExchange;
  /** What is done for this stream is done in its name: an error that escapes costs this stream. */
  readonly #owner: FaultOwner;

  constructor(
    number: number,
    { call, intake, kind }: IncomingStream,
    around: StreamSurroundings,
    security: StreamSecurity = plaintext,
  ) {
    this.number = number;
    this.#owner = { name: `ads-connection-${number}`, fail: (error) => this.#fail(error) };
    this.#call = call;
    this.kind = kind;
    this.#around = around;
    this.#security = security;
    this.#reader = new RequestReader(around.lists, around.rules.maxNames);
    this.#intake = intake;
    this.#lines = new RepeatedLines(around.logger, around.now);
    this.#transport = transportOf(call);
    if (!kind.delta) {
      replaceDecoder(call, (own, isAtRest) => new KnownRuns(own, () => this.#reader.said, isAtRest));
    }
    this.peer = call.getPeer();
    this.connectedAt = around.now();
    this.responder = new AdsResponder({
      number,
      method: kind.path,
      delta: kind.delta,
      onlyType: kind.onlyType,
      peer: this.peer,
      transport: this.#transport,
      around,
      tell: (report) => this.#outcome(report),
      contained: (deed) => this.#contained(deed),
      congested: (isCongested) => this.#congested(isCongested),
      broken: (error) => this.#close(`a response was not sent: ${messageOf(error)}`),
      rollout: (event) => this.#exchange.take(event),
      watchOf: (typeUrl) => ownValue(this.watches, typeUrl),
    });
    this.#exchange = new AdsExchange({
      rules: around.rules,
      tell: (report) => this.#tellOfExchange(report),
      send: (orders) => {
        if (!this.#isOver) this.responder.send(orders);
      },
      routine: around.tellsRoutine
        ? { told: (report) => this.#tell(report), pushed: (order) => this.#listener.pushed(order) }
        : undefined,
    });
    around.observer.streamOpened?.(kind.path);
  }

  /** What the client watches. */
  get watches(): Watches {
    return this.#exchange.watches;
  }

  /** Undefined until the client has told who it is. */
  get identity(): NodeIdentity | undefined {
    return this.#life.is === 'disposed' ? this.#life.node : clientOf(this.#life)?.node;
  }

  /** Finds out who is there, then reads, and reports. */
  open(listener: StreamListener): void {
    this.#listener = listener;
    const call = this.#call;
    if (call.cancelled) {
      this.#close('cancelled before it began');
      return;
    }
    const ended = (): void => this.#close('ended by the server');
    call.on('finish', () => {
      if (codeOf(this.#life) === undefined) ended();
    });
    // What was sent before the end may still be on its way when the call is finished. A client that is gone is let go in its turn, below.
    this.#transport.onDone(() => {
      if (this.#life.is === 'ending') ended();
    });
    call.on('cancelled', () => this.#gone('cancelled by the client'));
    // A status that we end it with is told as an error as well; it follows what was sent, and is cut off with it if the stream is over now.
    call.on('error', (error: Error) => {
      if (codeOf(this.#life) === undefined || clientOf(this.#life) === undefined) this.#close(messageOf(error));
    });
    // A call that was ended is closed before what was sent has left.
    call.on('close', () => {
      if (codeOf(this.#life) === undefined || this.#transport.isDone) this.#gone('closed');
    });
    if (this.#security.authenticators.length === 0) this.#admit([]);
    else this.#contained(() => void this.#authenticate());
  }

  execute(order: StreamOrder): void {
    this.#contained(() => {
      switch (order.type) {
        case 'responses.send':
          if (!this.#isOver) this.responder.send(order.orders);
          break;
        case 'changes.release':
        case 'stream.drain':
          this.#exchange.take(order);
          break;
        case 'waits.expire':
          this.responder.gate?.expire();
          break;
        case 'removals.expire':
          this.responder.gate?.expireRemovals();
          break;
        case 'stream.end':
          this.#end(order.code);
          this.#exchange.stop();
          this.responder.stop();
          this.#transport.end(order.code, order.reason);
          // A status would wait behind what the client does not read.
          if (order.cut === true) this.#transport.cut();
          break;
      }
    });
  }

  /** Brings the client up to date. @returns whether the change concerns what it watches */
  push(change: ResourceChange): boolean {
    // A node that watches nothing goes on to the present context as well: what it asks for next is answered from it.
    const client = clientOf(this.#life);
    if (client === undefined) return false;
    const types = this.#typesToPush(client, change);
    if (types.length === 0) return false;
    this.#contained(() => this.#exchange.take({ type: 'push.order', version: change.version, types }));
    return true;
  }

  /** The connection is over, however it came. */
  dispose(): void {
    const life = this.#life;
    if (life.is === 'disposed') return;
    const code = codeOf(life);
    const client = clientOf(life);
    this.#around.observer.streamClosed?.(this.kind.path, code ?? (this.#call.cancelled ? 'CANCELLED' : 'OK'));
    this.#life = { is: 'disposed', node: client?.node };
    this.#exchange.stop();
    this.responder.stop();
    // A client that does not read keeps its buffers until its TCP connection ends, unless the stream is cut.
    if (code === undefined && !this.responder.isCongested) {
      if (!this.#call.writableFinished) this.#call.end();
    } else if (client === undefined) this.#transport.finish();
    else if (!this.#transport.isDone) this.#transport.cut();
    this.#lines.end();
    if (this.responder.gate?.isWaiting === true) this.#around.observer.clustersAwaited?.(false);
    this.#around.shares.remove(this);
    if (client !== undefined) this.#contained(() => client.resources.close());
  }

  // ---- who is there

  async #authenticate(): Promise<void> {
    const answer = await authenticate(this.#security.authenticators, peerOf(this.#call));
    if (this.#life.is !== 'arriving') return;
    if ('identities' in answer) {
      this.#admit(answer.identities);
      return;
    }
    this.#around.logger.warn('peer.unauthenticated', { peer: this.peer, reason: answer.failure });
    this.#tell({ type: 'peer.unauthenticated', reason: answer.failure });
  }

  #admit(identities: readonly string[]): void {
    this.#life = { is: 'admitted', identities };
    this.#tell({ type: 'peer.authenticated', identities });
    this.#intake.begin((bytes) => this.#contained(() => this.#take(bytes)));
    this.#call.on('end', () => this.#tell({ type: 'peer.finished' }));
  }

  /** Learns from the first message what the client is. */
  #introduce(node: Uint8Array | undefined, identities: readonly string[]): boolean {
    let identity: NodeIdentity | undefined;
    if (node !== undefined && node.length > maxNodeBytes) {
      this.#refuse(`the node has ${node.length} bytes, and may have ${maxNodeBytes}`);
      return false;
    }
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
    if (identity.id.length > maxNodeIdLength || identity.cluster.length > maxNodeIdLength) {
      this.#refuse(
        `the node's id or cluster is longer than ${maxNodeIdLength} characters: ${shortened(identity.id, 80)}`,
      );
      return false;
    }
    const unverified = this.#around.secretsOnPlaintext && !this.#security.isSecure;
    const known = unverified ? { ...identity, secretsUnverified: true as const } : identity;
    const authorized = this.#authorized(known, identities);
    if (authorized === undefined) return false;
    const exhausted = this.#around.shares.rejectionOf(this, identities);
    if (exhausted !== undefined) {
      this.reject(exhausted);
      return false;
    }
    const opened = this.#openSource(identities.length === 0 ? authorized : { ...authorized, identities });
    if ('error' in opened) {
      const { error, code } = opened;
      if (code === undefined) this.#tell({ type: 'node.refused', reason: shortened(error) });
      else this.reject({ code, reason: error });
      return false;
    }
    const { resources } = opened;
    this.#life = { is: 'serving', client: { node: authorized, resources } };
    this.#around.shares.add(this, identities);
    resources.watched?.(() => this.watches);
    const { isSecure } = this.#security;
    this.responder.meet({ node: authorized, resources, identities, isSecure });
    this.#tell({ type: 'node.accepted', node: identity.id });
    return true;
  }

  /** Ends the stream with a status. */
  reject({ code, reason }: Refused): void {
    const text = shortened(reason);
    this.#lines.warn('rejected', 'workload.rejected', { peer: this.peer, code, reason: text });
    this.#tell({ type: 'workload.rejected', code, reason: text });
  }

  #refuse(reason: string): void {
    this.#around.logger.warn('node.refused', { peer: this.peer, reason });
    this.#tell({ type: 'node.refused', reason });
  }

  /** The node with the identity that is its own; undefined when the client is another. */
  #authorized(node: NodeIdentity, identities: readonly string[]): NodeIdentity | undefined {
    if (!this.#security.checksIdentity) return node;
    const answer = authorize(node, identities);
    if ('identity' in answer) {
      return answer.identity === undefined ? node : { ...node, verifiedIdentity: answer.identity };
    }
    const reason = shortened(answer.reason);
    const fields = { node: shortened(node.id), peer: this.peer, reason };
    this.#around.logger.warn('node.forbidden', fields);
    this.#tell({ type: 'node.forbidden', reason });
    return undefined;
  }

  #openSource(identity: NodeIdentity): ReturnType<ResourceSource['open']> {
    try {
      return this.#around.source.open(identity, (why) => this.reject(why));
    } catch (error) {
      this.#sourceFailed(error);
      return { error: `the node cannot be served: ${messageOf(error)}` };
    }
  }

  // ---- requests

  #take(bytes: Buffer): void {
    const life = this.#life;
    // What comes after the end is answered by nobody.
    if (life.is !== 'admitted' && life.is !== 'serving') return;
    const length = bytes.length + (omittedFrom(bytes)?.bytes.length ?? 0);
    this.#around.observer.requestReceived?.(this.kind.path, length);
    const started = performance.now();
    let read: ReadRequest;
    try {
      read = this.kind.delta ? this.#reader.delta(bytes) : this.#reader.sotw(bytes);
    } catch (error) {
      this.#tell({ type: 'request.unreadable', reason: shortened(messageOf(error)) });
      return;
    }
    const { request } = read;
    if (request.typeUrl === '' && this.kind.onlyType !== null) request.typeUrl = this.kind.onlyType;
    const isIntroduction = life.is === 'admitted' && request.typeUrl !== healthType;
    if (isIntroduction && !this.#introduce(read.node, life.identities)) return;
    if (read.exceedsNames) {
      this.#tell({ type: 'names.exceeded', reason: tooManyNames(this.#around.rules) });
      return;
    }
    this.#hear(request);
    if (!isIntroduction && read.node !== undefined) this.#hearNode(request.typeUrl, read.node);
    this.#around.observer.requestTaken?.(request.typeUrl, performance.now() - started);
  }

  #hear(request: AdsRequest): void {
    if (!isOfExchange(request, this.kind.onlyType)) {
      if (request.typeUrl === healthType) this.#hearHealth(request);
      this.#tell({ type: 'request.received', request });
      return;
    }
    const { typeUrl } = request;
    const before = ownValue(this.watches, typeUrl);
    const ackedBefore = before?.nonceAcked ?? '';
    // What it has acknowledged counts before the responses that the request leads to.
    this.responder.gate?.heard(request, before);
    this.#exchange.take({ type: 'request.received', request });
    const watch = ownValue(this.watches, typeUrl);
    if (watch === undefined) return;
    if (before !== undefined && before.names.length > watch.names.length) {
      this.responder.gate?.unsubscribed(typeUrl, watch);
    }
    if (request.rejection !== null && watch.nonceRejected === watch.nonceSent) {
      clientOf(this.#life)?.resources.rejected?.(typeUrl);
    }
    if (watch.nonceAcked === '') return;
    this.#listener.acknowledged();
    if (watch.nonceAcked !== ackedBefore) {
      clientOf(this.#life)?.resources.acknowledged?.(typeUrl, watch.versionAcked);
    }
  }

  /** Before it is known who says so, it is nobody's health. */
  #hearHealth({ rejection }: AdsRequest): void {
    clientOf(this.#life)?.resources.healthReported?.(rejection === null ? undefined : shortened(rejection));
  }

  /** An agent says on its own subscription what has become of its certificate. Envoys repeat their whole node: it is not read again. */
  #hearNode(typeUrl: string, node: Uint8Array): void {
    if (typeUrl !== proxyConfigType || node.length > maxLaterNodeBytes) return;
    try {
      clientOf(this.#life)?.resources.nodeHeard?.(typeUrl, readNode(node).metadata);
    } catch (error) {
      this.#around.logger.debug('node.unreadable', {
        peer: this.peer,
        reason: shortened(messageOf(error)),
      });
    }
  }

  /** What became of an order. */
  #outcome(report: StreamReport): void {
    if (report.type === 'response.sent' || report.type === 'response.skipped') this.#exchange.take(report);
    else {
      this.#noteRollout(report);
      this.#tell(report);
    }
  }

  /** Make before break: what people count and read. */
  #noteRollout(report: StreamReport): void {
    const { observer } = this.#around;
    if (report.type === 'clusters.abandoned') {
      observer.clustersAbandoned?.(report.clusters.length);
      const node = shortened(this.identity?.id ?? '');
      this.#lines.warn('abandoned', 'clusters.abandoned', {
        node,
        clusters: shortened(report.clusters.join(', ')),
      });
    } else if (report.type === 'clusters.evicted') {
      observer.clustersEvicted?.(report.clusters.length);
      this.#lines.warn('evicted', 'clusters.evicted', {
        node: shortened(this.identity?.id ?? ''),
        maxClusters: maxRetainedClusters,
        removed: report.clusters.length,
      });
    }
  }

  #tellOfExchange(report: StreamReport): void {
    if (report.type === 'request.judged') this.#judged(report.typeUrl, report.verdict, report.reason);
    this.#tell(report);
  }

  #judged(typeUrl: string, verdict: string, reason: string): void {
    const { observer, logger } = this.#around;
    const node = this.identity?.id ?? '';
    const fields = { node: shortened(node), typeUrl };
    if (verdict === 'rejection') {
      observer.responseRejected?.(typeUrl, node, reason);
      const facts = { ...fields, peer: this.peer, reason: shortened(reason) };
      this.#lines.warn(`rejection ${typeUrl}`, 'request.judged.rejection', facts);
    } else if (verdict === 'stale') {
      observer.nonceExpired?.(typeUrl, node);
      logger.debug('request.judged.stale', fields);
    } else if (verdict === 'misuse') {
      this.#lines.warn('misuse', 'request.judged.misuse', fields);
    } else {
      this.#lines.warn('unserved', 'request.judged.unserved', fields);
    }
  }

  /** Which of the watched types a change concerns. */
  #typesToPush({ resources }: Served, change: ResourceChange): string[] {
    const { watches } = this;
    const watched = Object.keys(watches).filter((typeUrl) => isSubscribed(watches[typeUrl]!));
    try {
      return [...resources.typesToPush(change, watched)];
    } catch (error) {
      this.#sourceFailed(error);
      return [];
    }
  }

  #sourceFailed(error: unknown): void {
    const node = this.identity?.id ?? '';
    this.#around.observer.sourceFailed?.('', node, error);
    this.#around.logger.error('resources.failed', { node: shortened(node), reason: shortened(messageOf(error)) });
  }

  /** What the client asks for while responses wait would have to be remembered: it may ask when it has read. */
  #congested(isCongested: boolean): void {
    if (isCongested) this.#intake.hold();
    this.#exchange.take({ type: isCongested ? 'stream.congested' : 'stream.relieved' });
    if (!isCongested) this.#intake.release();
  }

  // ---- the end

  get #isOver(): boolean {
    return this.#life.is === 'over' || this.#life.is === 'disposed';
  }

  #end(code: string): void {
    const life = this.#life;
    if (life.is === 'disposed') return;
    const is = life.is === 'gone' || life.is === 'over' ? life.is : 'ending';
    this.#life = { is, client: clientOf(life), code };
  }

  #gone(reason: string): void {
    const life = this.#life;
    if (this.#isOver || life.is === 'gone') return;
    this.#life = { is: 'gone', client: clientOf(life), code: codeOf(life) };
    this.#around.departures.run(() => this.#close(reason), 0);
  }

  #close(reason: string): void {
    if (this.#isOver) return;
    this.#life = { is: 'over', client: clientOf(this.#life), code: codeOf(this.#life) };
    this.#listener.report({ type: 'stream.closed', reason });
  }

  #tell(report: StreamReport): void {
    if (!this.#isOver) this.#listener.report(report);
  }

  /** A bug on one stream costs that stream. */
  #contained(deed: () => void): void {
    try {
      onBehalfOf(this.#owner, deed);
    } catch (error) {
      this.#around.logger.error('stream.failed', { peer: this.peer, error: (error as Error).stack });
      this.#fail(error);
    }
  }

  /** The client hears that it may come again. */
  #fail(error: unknown): void {
    if (this.#isOver) return;
    this.#transport.end('UNAVAILABLE', 'internal error');
    this.#close(messageOf(error));
  }
}
