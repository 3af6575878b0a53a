/** The effect of an ads-connection: one gRPC stream and what the source has for its node. */

import { type ExchangeRules, isOfExchange, tooManyNames } from '../../../../machines/discovery/xds/ads-exchange.ts';
import type { AdsRequest, StreamOrder, StreamReport } from '../../../../machines/discovery/xds/ads-protocol.ts';
import { healthType, proxyConfigType } from '../../../../machines/discovery/xds/ads-types.ts';
import { isSubscribed, type Watches } from '../../../../machines/discovery/xds/ads-watch.ts';
import { isProxyless } from '../../../model/node/parse-node.ts';
import { messageOf, withCode } from '../../../runtime/errors.ts';
import { type FaultOwner, onBehalfOf } from '../../../runtime/fences/fault-owner.ts';
import { ownValue } from '../../../runtime/json-object.ts';
import { authenticate } from '../access/authenticator.ts';
import { authorize } from '../access/authorization.ts';
import { grpcRules, maxLaterNodeBytes } from '../ads-limits.ts';
import { type ReadRequest, RequestReader, readNode } from '../requests/ads-request.ts';
import { KnownRuns, omittedFrom } from '../requests/known-runs.ts';
import type { RequestIntake } from '../requests/request-intake.ts';
import type { NodeIdentity, Refused, ResourceChange, ResourceSource } from '../resource-source.ts';
import { AdsResponder } from '../responses/ads-responder.ts';
import { AdsExchange } from './ads-exchange.ts';
import { type AdsCall, type AdsTransport, peerOf, replaceDecoder, transportOf } from './ads-transport.ts';
import { shortened } from './client-text.ts';
import {
  type IncomingStream,
  plaintext,
  type StreamKind,
  type StreamListener,
  type StreamSecurity,
} from './incoming-stream.ts';
import { introductionOf } from './introduction.ts';
import { clientOf, codeOf, type Life, type Served } from './stream-life.ts';
import { StreamLog } from './stream-log.ts';
import type { StreamSurroundings } from './stream-surroundings.ts';

const nobody: StreamListener = { report() {}, pushed() {}, responded() {}, acknowledged() {} };

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
  readonly #log: StreamLog;
  readonly #security: StreamSecurity;
  #rules: ExchangeRules;
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
    this.#rules = around.rules;
    this.#security = security;
    this.#reader = new RequestReader(around.lists, around.rules.maxNames);
    this.#intake = intake;
    this.#transport = transportOf(call);
    if (!kind.delta) {
      replaceDecoder(call, (own, isAtRest) => new KnownRuns(own, () => this.#reader.said, isAtRest));
    }
    this.peer = call.getPeer();
    this.#log = new StreamLog(around, this.peer, () => this.identity?.id ?? '');
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
      broken: (error) => this.#close(`sending a response failed: ${messageOf(error)}`),
      rollout: (event) => this.#exchange.take(event),
      watchOf: (typeUrl) => ownValue(this.watches, typeUrl),
    });
    this.#exchange = new AdsExchange({
      rules: () => this.#rules,
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
      this.#close('cancelled before it started');
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
    this.#log.end();
    this.responder.gate?.end();
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
    this.#log.unauthenticated(answer.failure);
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
    const introduced = introductionOf(node);
    if ('refusal' in introduced) {
      this.#refuse(introduced.refusal);
      return false;
    }
    if ('report' in introduced) {
      this.#tell(introduced.report);
      return false;
    }
    const { identity } = introduced;
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
      if (code === undefined) this.#tell({ type: 'node.refused', reason: withCode(shortened(error), 'NODE_INVALID') });
      else this.reject({ code, reason: error });
      return false;
    }
    const { resources } = opened;
    if (isProxyless(authorized.metadata)) this.#rules = grpcRules(this.#rules);
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
    this.#log.rejected(code, text);
    this.#tell({ type: 'workload.rejected', code, reason: text });
  }

  #refuse(text: string): void {
    const reason = withCode(text, 'NODE_INVALID');
    this.#log.refused(reason);
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
    this.#log.forbidden(node.id, reason);
    this.#tell({ type: 'node.forbidden', reason });
    return undefined;
  }

  #openSource(identity: NodeIdentity): ReturnType<ResourceSource['open']> {
    try {
      return this.#around.source.open(identity, (why) => this.reject(why));
    } catch (error) {
      this.#log.sourceFailed(error);
      return { error: `internal error: ${messageOf(error)}` };
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
      this.#tell({ type: 'names.exceeded', reason: tooManyNames(this.#rules) });
      return;
    }
    this.#hear(request);
    if (!isIntroduction && read.node !== undefined) this.#hearNode(request.typeUrl, read.node);
    this.#around.observer.requestTaken?.(request.typeUrl, performance.now() - started);
  }

  #hear(request: AdsRequest): void {
    this.#log.requested(request);
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
      this.#log.unreadableNode(error);
    }
  }

  #outcome(report: StreamReport): void {
    this.#log.outcome(report);
    if (report.type === 'response.sent' || report.type === 'response.skipped') {
      this.#listener.responded();
      this.#exchange.take(report);
    } else this.#tell(report);
  }

  #tellOfExchange(report: StreamReport): void {
    if (report.type === 'request.judged') this.#log.judged(report.typeUrl, report.verdict, report.reason);
    this.#tell(report);
  }

  /** Which of the watched types a change concerns. */
  #typesToPush({ resources }: Served, change: ResourceChange): string[] {
    const { watches } = this;
    const watched = Object.keys(watches).filter((typeUrl) => isSubscribed(watches[typeUrl]!));
    try {
      return [...resources.typesToPush(change, watched)];
    } catch (error) {
      this.#log.sourceFailed(error);
      return [];
    }
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
      this.#log.failed(error);
      this.#fail(error);
    }
  }

  /** The client hears that it may come again. */
  #fail(error: unknown): void {
    if (this.#isOver) return;
    this.#transport.end('UNAVAILABLE', withCode('internal error', 'INTERNAL_ERROR'));
    this.#close(messageOf(error));
  }
}
