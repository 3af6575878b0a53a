/** Effects of the chart `ads-connection`: a gRPC stream and the resources of its node. */
import type { EndStatus } from '../../../../machines/discovery/xds/ads-connection-context.ts';
import {
  type ExchangeRules,
  isExchangeRequest,
  tooManyNames,
} from '../../../../machines/discovery/xds/ads-exchange.ts';
import type { AdsRequest, AdsStreamReport, StreamOrder } from '../../../../machines/discovery/xds/ads-protocol.ts';
import { healthType, proxyConfigType } from '../../../../machines/discovery/xds/ads-types.ts';
import { isSubscribed, type Watches } from '../../../../machines/discovery/xds/ads-watch.ts';
import { isProxyless } from '../../../model/node/parse-node.ts';
import { appendCode, messageOf } from '../../../runtime/errors.ts';
import { type FaultOwner, runAsOwner } from '../../../runtime/fences/fault-owner.ts';
import { ownValue } from '../../../runtime/json-object.ts';
import { authenticate } from '../access/authenticator.ts';
import { authorize } from '../access/authorization.ts';
import { grpcRules, maxLaterNodeBytes } from '../ads-limits.ts';
import { type ReadRequest, RequestReader, readNode } from '../requests/ads-request.ts';
import { KnownRuns, omittedFrom } from '../requests/known-runs.ts';
import type { RequestIntake } from '../requests/request-intake.ts';
import type { NodeIdentity, ResourceChange, ResourceSource, StreamRejection } from '../resource-source.ts';
import { AdsResponder } from '../responses/ads-responder.ts';
import { AdsExchange } from './ads-exchange.ts';
import { type AdsCall, type AdsTransport, peerOf, replaceDecoder, transportOf } from './ads-transport.ts';
import { shortenText } from './client-text.ts';
import {
  type IncomingStream,
  plaintextSecurity,
  type StreamKind,
  type StreamListener,
  type StreamSecurity,
} from './incoming-stream.ts';
import { introductionOf } from './introduction.ts';
import type { StreamContext } from './stream-context.ts';
import { clientOf, codeOf, type ServedClient, type StreamLife } from './stream-life.ts';
import { StreamLog } from './stream-log.ts';

const noListener: StreamListener = { report() {}, onPushed() {}, onResponded() {}, onAcknowledged() {} };

export class AdsStream {
  /** Number in the actor's name `ads-connection-N`. */
  readonly number: number;
  readonly kind: StreamKind;
  readonly peer: string;
  readonly connectedAt: number;
  readonly responder: AdsResponder;
  readonly #call: AdsCall;
  readonly #transport: AdsTransport;
  readonly #context: StreamContext;
  readonly #reader: RequestReader;
  readonly #requestIntake: RequestIntake;
  readonly #log: StreamLog;
  readonly #security: StreamSecurity;
  #rules: ExchangeRules;
  #lifecycle: StreamLife = { is: 'arriving' };
  #listener = noListener;
  readonly #exchange: AdsExchange;
  /** An uncaught error in one of this stream's tasks closes only this stream. */
  readonly #owner: FaultOwner;

  constructor(
    number: number,
    { call, intake, kind }: IncomingStream,
    context: StreamContext,
    security: StreamSecurity = plaintextSecurity,
  ) {
    this.number = number;
    this.#owner = { name: `ads-connection-${number}`, fail: (error) => this.#fail(error) };
    this.#call = call;
    this.kind = kind;
    this.#context = context;
    this.#rules = context.rules;
    this.#security = security;
    this.#reader = new RequestReader(context.nameLists, context.rules.maxNames);
    this.#requestIntake = intake;
    this.#transport = transportOf(call);
    if (!kind.isDelta) {
      replaceDecoder(call, (grpcDecoder, isIdle) => new KnownRuns(grpcDecoder, () => this.#reader.lastLists, isIdle));
    }
    this.peer = call.getPeer();
    this.#log = new StreamLog(context, this.peer, () => this.identity?.id ?? '');
    this.connectedAt = context.now();
    this.responder = new AdsResponder({
      number,
      method: kind.path,
      isDelta: kind.isDelta,
      onlyType: kind.onlyType,
      peer: this.peer,
      transport: this.#transport,
      context,
      onReport: (report) => this.#reportOutcome(report),
      runGuarded: (task) => this.#runGuarded(task),
      onCongestionChange: (isCongested) => this.#setCongested(isCongested),
      onBroken: (error) => this.#fail(error),
      onRolloutEvent: (event) => this.#exchange.handleEvent(event),
      watchOf: (typeUrl) => ownValue(this.watches, typeUrl),
      isHalfClosed: () => this.#exchange.isHalfClosed,
      isServed: () => this.#requestIntake.isServed,
    });
    this.#exchange = new AdsExchange({
      rules: () => this.#rules,
      report: (report) => this.#reportExchange(report),
      send: (orders) => {
        if (!this.#isClosed) this.responder.send(orders);
      },
      routine: context.reportsRoutine
        ? { reported: (report) => this.#report(report), onPushed: (order) => this.#listener.onPushed(order) }
        : undefined,
    });
    context.observer.streamOpened?.(kind.path);
  }

  get watches(): Watches {
    return this.#exchange.watches;
  }

  /** `undefined` until the node is accepted. */
  get identity(): NodeIdentity | undefined {
    return this.#lifecycle.is === 'disposed' ? this.#lifecycle.node : clientOf(this.#lifecycle)?.node;
  }

  start(listener: StreamListener): void {
    this.#listener = listener;
    const call = this.#call;
    if (call.cancelled) {
      this.#close('cancelled before it started');
      return;
    }
    const onEnded = (): void => this.#close('ended by the server');
    call.on('finish', () => {
      if (codeOf(this.#lifecycle) === undefined) onEnded();
    });
    // Responses may be in flight when the call is finished. Cancelled streams are handled below.
    this.#transport.onDone(() => {
      if (this.#lifecycle.is === 'ending') onEnded();
    });
    call.on('cancelled', () => this.#onDisconnected('cancelled by the client'));
    // The status follows earlier responses and would be lost if the stream were closed now.
    call.on('error', (error: Error) => {
      if (codeOf(this.#lifecycle) === undefined || clientOf(this.#lifecycle) === undefined)
        this.#close(messageOf(error));
    });
    // An ended call is closed before its last responses are sent.
    call.on('close', () => {
      if (codeOf(this.#lifecycle) === undefined || this.#transport.isDone) this.#onDisconnected('closed');
    });
    if (this.#security.authenticators.length === 0) this.#admit([]);
    else this.#runGuarded(() => void this.#authenticate());
  }

  execute(order: StreamOrder): void {
    this.#runGuarded(() => {
      switch (order.type) {
        case 'responses.send':
        case 'changes.release':
        case 'stream.drain':
          this.#exchange.handleEvent(order);
          break;
        case 'waits.expire':
          this.responder.gate?.expire();
          break;
        case 'removals.expire':
          this.responder.gate?.expireRemovals();
          break;
        case 'stream.end':
          this.#endStream(order.code);
          this.#exchange.stop();
          this.responder.stop();
          this.#transport.end(order.code, order.reason);
          // A status would wait behind responses that the client does not read.
          if (order.cut === true) this.#transport.abort();
          break;
      }
    });
  }

  push(change: ResourceChange): boolean {
    // Also updates the context of a node without subscriptions, for its next request.
    const client = clientOf(this.#lifecycle);
    if (client === undefined) return false;
    const types = this.#typesToPush(client, change);
    if (types.length === 0) return false;
    this.#runGuarded(() => this.#exchange.handleEvent({ type: 'connection.push', version: change.version, types }));
    return true;
  }

  /** @param failure status if the chart has failed */
  dispose(failure?: EndStatus): void {
    const lifecycle = this.#lifecycle;
    if (lifecycle.is === 'disposed') return;
    const code = codeOf(lifecycle);
    if (failure !== undefined && code === undefined) this.#transport.end(failure.code, failure.reason);
    const client = clientOf(lifecycle);
    const { sentCode = this.#call.cancelled ? 'CANCELLED' : 'OK' } = this.#transport;
    this.#context.observer.streamClosed?.(this.kind.path, code ?? failure?.code ?? sentCode);
    this.#lifecycle = { is: 'disposed', node: client?.node };
    this.#exchange.stop();
    this.responder.stop();
    // A client that does not read keeps its buffers until its TCP connection ends, so a congested stream is cut.
    if (code === undefined && !this.responder.isCongested) {
      if (!this.#call.writableFinished) this.#call.end();
    } else if (client === undefined) this.#transport.finish();
    else if (!this.#transport.isDone) this.#transport.abort();
    this.#log.end();
    this.responder.gate?.end();
    this.#context.shares.remove(this);
    if (client !== undefined) this.#runGuarded(() => client.resources.close());
  }

  async #authenticate(): Promise<void> {
    const result = await authenticate(this.#security.authenticators, peerOf(this.#call));
    if (this.#lifecycle.is !== 'arriving') return;
    if ('identities' in result) {
      this.#admit(result.identities);
      return;
    }
    this.#log.logUnauthenticated(result.failure);
    this.#report({ type: 'peer.unauthenticated', reason: result.failure });
  }

  #admit(identities: readonly string[]): void {
    this.#lifecycle = { is: 'admitted', identities };
    this.#report({ type: 'peer.authenticated', identities });
    this.#requestIntake.start((bytes) => this.#runGuarded(() => this.#handleRequest(bytes)));
    this.#call.on('end', () => this.#runGuarded(() => this.#onHalfClosed()));
  }

  #onHalfClosed(): void {
    // A lost connection ends the requests too.
    if (this.#transport.isDone) return;
    this.#exchange.handleEvent({ type: 'peer.half-closed' });
  }

  #acceptNode(node: Uint8Array | undefined, identities: readonly string[]): boolean {
    const introduction = introductionOf(node);
    if ('refusal' in introduction) {
      this.#rejectNode(introduction.refusal);
      return false;
    }
    if ('report' in introduction) {
      this.#report(introduction.report);
      return false;
    }
    const { identity } = introduction;
    const isUnverified = this.#context.secretsOnPlaintext && !this.#security.isSecure;
    const verifiedIdentity = isUnverified ? { ...identity, secretsUnverified: true as const } : identity;
    const authorized = this.#authorizeNode(verifiedIdentity, identities);
    if (authorized === undefined) return false;
    const shareRejection = this.#context.shares.rejectionOf(this, identities);
    if (shareRejection !== undefined) {
      this.reject(shareRejection);
      return false;
    }
    const openedSource = this.#openSource(identities.length === 0 ? authorized : { ...authorized, identities });
    if ('error' in openedSource) {
      const { error, code } = openedSource;
      if (code === undefined)
        this.#report({ type: 'node.invalid', reason: appendCode(shortenText(error), 'NODE_INVALID') });
      else this.reject({ code, reason: error });
      return false;
    }
    const { resources } = openedSource;
    if (isProxyless(authorized.metadata)) this.#rules = grpcRules(this.#rules);
    this.#lifecycle = { is: 'serving', client: { node: authorized, resources } };
    this.#context.shares.add(this, identities);
    resources.provideWatches?.(() => this.watches);
    const { isSecure } = this.#security;
    this.responder.setClient({ node: authorized, resources, identities, isSecure });
    this.#report({ type: 'node.accepted', node: identity.id });
    return true;
  }

  reject({ code, reason }: StreamRejection): void {
    const text = shortenText(reason);
    this.#log.logRejected(code, text);
    this.#report({ type: 'workload.rejected', code, reason: text });
  }

  #rejectNode(text: string): void {
    const reason = appendCode(text, 'NODE_INVALID');
    this.#log.logRejection(reason);
    this.#report({ type: 'node.invalid', reason });
  }

  /** Returns the node with its verified identity, or `undefined` if the client may not use this node. */
  #authorizeNode(node: NodeIdentity, identities: readonly string[]): NodeIdentity | undefined {
    if (!this.#security.checksIdentity) return node;
    const result = authorize(node, identities);
    if ('identity' in result) {
      return result.identity === undefined ? node : { ...node, verifiedIdentity: result.identity };
    }
    const reason = shortenText(result.reason);
    this.#log.logForbidden(node.id, reason);
    this.#report({ type: 'node.forbidden', reason });
    return undefined;
  }

  #openSource(identity: NodeIdentity): ReturnType<ResourceSource['openNode']> {
    try {
      return this.#context.source.openNode(identity, (rejection) => this.reject(rejection));
    } catch (error) {
      this.#log.sourceFailed(error);
      return { error: `internal error: ${messageOf(error)}` };
    }
  }

  #handleRequest(bytes: Buffer): void {
    const lifecycle = this.#lifecycle;
    // Requests after the end are ignored.
    if (lifecycle.is !== 'admitted' && lifecycle.is !== 'serving') return;
    const length = bytes.length + (omittedFrom(bytes)?.bytes.length ?? 0);
    this.#context.observer.requestReceived?.(this.kind.path, length);
    const startedAt = performance.now();
    let readRequest: ReadRequest;
    try {
      readRequest = this.kind.isDelta ? this.#reader.readDelta(bytes) : this.#reader.readSotw(bytes);
    } catch (error) {
      this.#report({ type: 'request.invalid', reason: shortenText(messageOf(error)) });
      return;
    }
    const { request } = readRequest;
    if (request.typeUrl === '' && this.kind.onlyType !== null) request.typeUrl = this.kind.onlyType;
    const isFirstRequest = lifecycle.is === 'admitted' && request.typeUrl !== healthType;
    if (isFirstRequest && !this.#acceptNode(readRequest.node, lifecycle.identities)) return;
    if (readRequest.exceedsNames) {
      this.#report({ type: 'subscription-limit.exceeded', reason: tooManyNames(this.#rules) });
      return;
    }
    this.#processRequest(request);
    if (!isFirstRequest && readRequest.node !== undefined) this.#processNode(request.typeUrl, readRequest.node);
    this.#context.observer.requestTaken?.(request.typeUrl, performance.now() - startedAt);
  }

  #processRequest(request: AdsRequest): void {
    this.#log.logRequest(request);
    if (!isExchangeRequest(request, this.kind.onlyType)) {
      if (request.typeUrl === healthType) this.#processHealth(request);
      this.#report({ type: 'request.received', request });
      return;
    }
    const { typeUrl } = request;
    const previous = ownValue(this.watches, typeUrl);
    const previousNonceAcked = previous?.nonceAcked ?? '';
    // ACKs are processed before responses to the same request.
    this.responder.gate?.onRequest(request, previous);
    this.#exchange.handleEvent({ type: 'request.received', request });
    const watch = ownValue(this.watches, typeUrl);
    if (watch === undefined) return;
    if (previous !== undefined && previous.names.length > watch.names.length) {
      this.responder.gate?.onUnsubscribed(typeUrl, watch);
    }
    if (request.rejection !== null && watch.nonceRejected === watch.nonceSent) {
      clientOf(this.#lifecycle)?.resources.rejected?.(typeUrl);
    }
    if (watch.nonceAcked === '') return;
    this.#requestIntake.isServed = true;
    this.#listener.onAcknowledged();
    if (watch.nonceAcked !== previousNonceAcked) {
      clientOf(this.#lifecycle)?.resources.acknowledged?.(typeUrl, watch.versionAcked);
    }
  }

  #processHealth({ rejection }: AdsRequest): void {
    clientOf(this.#lifecycle)?.resources.healthReported?.(rejection === null ? undefined : shortenText(rejection));
  }

  /** An agent reports the state of its certificate on its own subscription. Envoys repeat their whole node, which is not parsed again. */
  #processNode(typeUrl: string, node: Uint8Array): void {
    if (typeUrl !== proxyConfigType || node.length > maxLaterNodeBytes) return;
    try {
      clientOf(this.#lifecycle)?.resources.nodeUpdated?.(typeUrl, readNode(node).metadata);
    } catch (error) {
      this.#log.unreadableNode(error);
    }
  }

  #reportOutcome(report: AdsStreamReport): void {
    this.#log.logOutcome(report);
    if (report.type === 'response.sent' || report.type === 'response.skipped') {
      this.#listener.onResponded();
      this.#exchange.handleEvent(report);
    } else this.#report(report);
  }

  #reportExchange(report: AdsStreamReport): void {
    if (report.type === 'request.classified') this.#log.logClass(report.typeUrl, report.requestClass, report.reason);
    this.#report(report);
  }

  #typesToPush({ resources }: ServedClient, change: ResourceChange): string[] {
    const { watches } = this;
    const watchedTypes = Object.keys(watches).filter((typeUrl) => isSubscribed(watches[typeUrl]!));
    try {
      return [...resources.typesToPush(change, watchedTypes)];
    } catch (error) {
      this.#log.sourceFailed(error);
      return [];
    }
  }

  #setCongested(isCongested: boolean): void {
    if (isCongested) this.#requestIntake.pause();
    this.#exchange.handleEvent({ type: isCongested ? 'stream.congested' : 'stream.resumed' });
    if (!isCongested) this.#requestIntake.resume();
  }

  get #isClosed(): boolean {
    return this.#lifecycle.is === 'over' || this.#lifecycle.is === 'disposed';
  }

  #endStream(code: string): void {
    const lifecycle = this.#lifecycle;
    if (lifecycle.is === 'disposed') return;
    const endState = lifecycle.is === 'gone' || lifecycle.is === 'over' ? lifecycle.is : 'ending';
    this.#lifecycle = { is: endState, client: clientOf(lifecycle), code };
  }

  #onDisconnected(reason: string): void {
    const lifecycle = this.#lifecycle;
    if (this.#isClosed || lifecycle.is === 'gone') return;
    this.#lifecycle = { is: 'gone', client: clientOf(lifecycle), code: codeOf(lifecycle) };
    this.#context.closingTurns.run(() => this.#close(reason), 0);
  }

  #close(reason: string): void {
    if (this.#isClosed) return;
    this.#lifecycle = { is: 'over', client: clientOf(this.#lifecycle), code: codeOf(this.#lifecycle) };
    this.#listener.report({ type: 'stream.closed', reason });
  }

  #report(report: AdsStreamReport): void {
    if (!this.#isClosed) this.#listener.report(report);
  }

  #runGuarded(task: () => void): void {
    try {
      runAsOwner(this.#owner, task);
    } catch (error) {
      this.#log.logFailed(error);
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    if (codeOf(this.#lifecycle) === undefined) this.#report({ type: 'stream.failed', reason: messageOf(error) });
    else this.#close(messageOf(error));
  }
}
