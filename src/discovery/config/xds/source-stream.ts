import type { ClientHttp2Stream } from 'node:http2';
import { setTimeout as delay } from 'node:timers/promises';
import { fromCallback } from 'xstate';
import type {
  SourceResponseReceived,
  SourceStreamEnded,
  SourceStreamOpened,
  XdsProtocol,
  XdsSourceOrder,
} from '../../../../machines/discovery/config/xds-source-protocol.ts';
import type { KindName } from '../../../model/kinds/index.ts';
import { explainInOneLine, messageOf } from '../../../runtime/errors.ts';
import { type RateLimit, RateLimiter } from '../../../runtime/fences/allowance.ts';
import { GrpcError } from '../../../runtime/grpc/call-status.ts';
import {
  defaultGrpcLimits,
  GrpcConnection,
  type GrpcConnectionLimits,
  type GrpcTarget,
  onCallEnd,
} from '../../../runtime/grpc/grpc-client.ts';
import { FrameReader, frameHeadBytes, frameOf } from '../../../runtime/grpc/grpc-frames.ts';
import type { Logger } from '../../../runtime/output/log.ts';
import { SerialQueue, Turns } from '../../../runtime/turns.ts';
import { problemLine } from '../sources/config-problem.ts';
import { configKinds, kindOfType, meshConfigType, typesOf } from './config-types.ts';
import {
  decodeResponse,
  encodeRequest,
  type SourceNode,
  type SourceRequest,
  streamMethods,
} from './source-messages.ts';
import type { SourceObjects, StagedResponse } from './source-objects.ts';

export interface SourceConnection {
  readonly target: GrpcTarget;
  readonly headers: Readonly<Record<string, string>>;
}

export interface SourceStreamOptions {
  readonly objects: () => SourceObjects;
  readonly node: SourceNode;
  readonly versions: readonly string[];
  /** Called for each connection, because certificates and tokens are rotated. */
  readonly connection: () => Promise<SourceConnection>;
  readonly log: Logger;
  readonly maxMessageBytes: number;
  readonly maxObjects: number;
  /** Flow control makes the server wait. */
  readonly pace: RateLimit;
  /** Called if objects of the kind changed or must be saved. */
  readonly onApplied: (kind: KindName, isChanged: boolean) => void;
  readonly countOutcome: (outcome: 'accepted' | 'rejected') => void;
  readonly limits?: GrpcConnectionLimits;
  readonly random?: () => number;
}

/** Log and status contain all errors. */
const maxListedErrors = 10;

type SourceStreamReport = SourceStreamOpened | SourceResponseReceived | SourceStreamEnded;

export function sourceStream(options: SourceStreamOptions) {
  return fromCallback<XdsSourceOrder, { protocol: XdsProtocol }>(({ input, sendBack, receive }) => {
    const stop = new AbortController();
    const stream = new SourceStream(options, input.protocol, stop.signal, (event) => {
      if (!stop.signal.aborted) sendBack(event);
    });
    receive((order) => stream.execute(order));
    void stream.start();
    return () => {
      stop.abort();
      stream.close();
    };
  });
}

interface TypeSubscription {
  readonly kind: KindName;
  readonly typeUrl: string;
  version: string;
}

interface PendingResponse {
  readonly subscription: TypeSubscription;
  readonly response: StagedResponse;
  readonly version: string;
  readonly settle: () => void;
}

class SourceStream {
  readonly #options: SourceStreamOptions;
  readonly #protocol: XdsProtocol;
  readonly #stopSignal: AbortSignal;
  readonly #report: (event: SourceStreamReport) => void;
  readonly #subscriptions = new Map<string, TypeSubscription>();
  /** The type URL determines the API version that the server uses for the kind. */
  readonly #typeOfKind = new Map<KindName, string>();
  readonly #nonEmptyTypes = new Set<string>();
  readonly #pausedKinds = new Map<KindName, readonly string[]>();
  /** Responses that wait for a decision of the chart, by kind and nonce. */
  readonly #pendingResponses = new Map<string, PendingResponse>();
  readonly #serialQueue = new SerialQueue();
  readonly #allowance: RateLimiter;
  #connection: GrpcConnection | undefined;
  #stream: ClientHttp2Stream | undefined;
  #isEnded = false;

  constructor(
    options: SourceStreamOptions,
    protocol: XdsProtocol,
    stopSignal: AbortSignal,
    report: (event: SourceStreamReport) => void,
  ) {
    this.#options = options;
    this.#protocol = protocol;
    this.#stopSignal = stopSignal;
    this.#report = report;
    this.#allowance = new RateLimiter(options.pace);
  }

  async start(): Promise<void> {
    try {
      const { target, headers } = await this.#options.connection();
      this.#stopSignal.throwIfAborted();
      this.#connection = await GrpcConnection.open(target, this.#options.limits ?? defaultGrpcLimits, this.#stopSignal);
      if (this.#stopSignal.aborted) {
        this.#connection.close();
        return;
      }
      this.#openStream(this.#connection, headers);
    } catch (error) {
      const code = error instanceof GrpcError ? error.code : 'UNAVAILABLE';
      this.#endStream(code, error instanceof GrpcError ? error.details : explainInOneLine(error));
    }
  }

  #openStream(connection: GrpcConnection, headers: Readonly<Record<string, string>>): void {
    const stream = connection.start(streamMethods[this.#protocol], headers);
    this.#stream = stream;
    const { maxMessageBytes } = this.#options;
    const reader = new FrameReader({ wholeBytes: maxMessageBytes, maxBytes: maxMessageBytes });
    stream.on('data', (chunk: Buffer) => {
      try {
        reader.push(chunk, ({ bytes }) => this.#receive(bytes.subarray(frameHeadBytes)));
      } catch (error) {
        this.#endStream('RESOURCE_EXHAUSTED', error instanceof GrpcError ? error.details : messageOf(error));
      }
    });
    onCallEnd(stream, connection, (status) => {
      const { code, details, retryAfterMs } = status ?? new GrpcError('UNAVAILABLE', 'the server closed the stream');
      this.#endStream(code, details, retryAfterMs);
    });
    this.#send({ typeUrl: meshConfigType, node: this.#options.node });
    for (const kind of configKinds) this.#subscribe(kind, typesOf(kind, this.#options.versions)[0]!);
    this.#report({ type: 'source-stream.opened' });
  }

  #subscribe(kind: KindName, typeUrl: string): void {
    if (this.#subscriptions.has(typeUrl)) return;
    this.#subscriptions.set(typeUrl, { kind, typeUrl, version: '' });
    const isFirst = this.#typeOfKind.get(kind) === undefined;
    if (isFirst) this.#typeOfKind.set(kind, typeUrl);
    this.#send({ typeUrl, ...(isFirst && { initialVersions: this.#options.objects().versionsOf(kind) }) });
  }

  /** Reading pauses until the response is decoded. */
  #receive(message: Buffer): void {
    this.#stream?.pause();
    // Decoding must finish before reading resumes, because later messages may reuse the memory.
    void this.#serialQueue
      .run(() => this.#readMessage(message))
      .catch((error: unknown) => this.#endStream('INTERNAL', messageOf(error)))
      .finally(() => this.#stream?.resume());
  }

  async #readMessage(message: Buffer): Promise<void> {
    while (!this.#allowance.tryTake()) await delay(100, undefined, { signal: this.#stopSignal });
    if (this.#isEnded || this.#stopSignal.aborted) return;
    const { objects, maxObjects } = this.#options;
    const response = decodeResponse(message, this.#protocol, maxObjects);
    const kind = kindOfType(response.typeUrl);
    const subscription = this.#subscriptionOf(response.typeUrl);
    // MeshConfig is not acknowledged, as in Istio.
    if (kind === undefined || subscription === undefined) return;
    const workTurns = new Turns();
    const stagedResponse = this.#withPaused(
      await workTurns.runSteps(objects().stage(kind, response.resources, response.removedNames)),
    );
    if (this.#isEnded || this.#stopSignal.aborted) return;
    const { nonce, version } = response;
    if (stagedResponse.refusal !== undefined) {
      this.#options.log.error('config-source.responseRejected', { kind, reason: stagedResponse.refusal });
      this.#acknowledge(subscription, nonce, version, `the response ${stagedResponse.refusal}; the last objects stay`);
      return;
    }
    if (!this.#isChosenType(kind, subscription.typeUrl, stagedResponse)) {
      this.#acknowledge(subscription, nonce, version);
      return;
    }
    await new Promise<void>((resolve) => {
      this.#pendingResponses.set(`${kind} ${nonce}`, {
        subscription,
        response: stagedResponse,
        version,
        settle: resolve,
      });
      const { knownCount, removedNames, rejectedCount } = stagedResponse;
      this.#report({
        type: 'source-response.received',
        kind,
        nonce,
        known: knownCount,
        removed: removedNames.length,
        rejected: rejectedCount,
      });
    });
  }

  /** A delta response reports a removal only once, so a paused removal stays pending until the server sends the object again. */
  #withPaused(response: StagedResponse): StagedResponse {
    const previous = this.#protocol === 'delta' ? (this.#pausedKinds.get(response.kind) ?? []) : [];
    if (previous.length === 0) return response;
    const removedNames = previous.filter((name) => !response.presentNames.has(name));
    return { ...response, removedNames: [...new Set([...removedNames, ...response.removedNames])] };
  }

  #subscriptionOf(typeUrl: string): TypeSubscription | undefined {
    return this.#subscriptions.get(typeUrl) ?? this.#subscriptions.get(typeUrl.slice(typeUrl.indexOf('/') + 1));
  }

  /** A server may know only one API version and send empty responses for others. */
  #isChosenType(kind: KindName, typeUrl: string, { sentCount, removedNames, knownCount }: StagedResponse): boolean {
    const chosenType = this.#typeOfKind.get(kind) ?? '';
    if (chosenType === typeUrl) {
      if (sentCount === 0 && removedNames.length === knownCount) {
        this.#nonEmptyTypes.delete(chosenType);
        this.#requestAllTypes(kind);
      } else this.#nonEmptyTypes.add(chosenType);
      return true;
    }
    if (sentCount === 0 || this.#nonEmptyTypes.has(chosenType)) return false;
    this.#typeOfKind.set(kind, typeUrl);
    this.#nonEmptyTypes.add(typeUrl);
    return true;
  }

  #requestAllTypes(kind: KindName): void {
    for (const typeUrl of typesOf(kind, this.#options.versions)) this.#subscribe(kind, typeUrl);
  }

  execute(order: XdsSourceOrder): void {
    if (this.#isEnded) return;
    switch (order.type) {
      case 'source-response.apply':
        this.#apply(order.kind as KindName, order.nonce, order.deletions === 'apply');
        break;
      case 'source-deletions.apply':
        for (const kind of order.kinds as KindName[]) this.#applyPausedResponse(kind);
        break;
      case 'source-versions.request':
        for (const kind of order.kinds as KindName[]) this.#requestAllTypes(kind);
        break;
    }
  }

  #apply(kind: KindName, nonce: string, deletes: boolean): void {
    const pendingResponse = this.#pendingResponses.get(`${kind} ${nonce}`);
    if (pendingResponse === undefined) return;
    this.#pendingResponses.delete(`${kind} ${nonce}`);
    const { subscription, response, version, settle } = pendingResponse;
    const isChanged = this.#options.objects().apply(response, deletes);
    if (deletes) this.#pausedKinds.delete(kind);
    else this.#pause(kind, response);
    this.#options.onApplied(kind, isChanged);
    this.#acknowledge(subscription, nonce, version, rejectionOf(response));
    settle();
  }

  #pause(kind: KindName, { removedNames }: StagedResponse): void {
    if (!this.#pausedKinds.has(kind)) {
      this.#options.log.warn('config-source.deletionsPaused', { kind, objects: removedNames.length });
    }
    this.#pausedKinds.set(kind, removedNames);
  }

  #applyPausedResponse(kind: KindName): void {
    const names = this.#pausedKinds.get(kind);
    if (names === undefined) return;
    this.#pausedKinds.delete(kind);
    this.#options.log.warn('config-source.deletionsApplied', { kind, objects: names.length });
    this.#options.onApplied(kind, this.#options.objects().delete(kind, names));
  }

  #acknowledge(subscription: TypeSubscription, nonce: string, version: string, rejection?: string): void {
    this.#options.countOutcome(rejection === undefined ? 'accepted' : 'rejected');
    if (rejection === undefined) subscription.version = version;
    const { typeUrl } = subscription;
    this.#send({ typeUrl, version: subscription.version, nonce, ...(rejection !== undefined && { rejection }) });
  }

  #send(request: SourceRequest): void {
    const stream = this.#stream;
    if (stream === undefined || stream.closed || stream.destroyed || stream.writableEnded) return;
    stream.write(frameOf(encodeRequest(request, this.#protocol)));
  }

  #endStream(code: string, reason: string, retryAfterMs = 0): void {
    if (this.#isEnded) return;
    this.close();
    if (this.#stopSignal.aborted) return;
    const { random = Math.random } = this.#options;
    this.#report({ type: 'source-stream.ended', code, reason, retryAfterMs, chance: random() });
  }

  close(): void {
    this.#isEnded = true;
    for (const { settle } of this.#pendingResponses.values()) settle();
    this.#pendingResponses.clear();
    this.#connection?.close();
  }
}

/** Message such as `2 objects rejected, their last valid versions stay: VirtualService shop/web: spec.hosts: must not be empty; …`. */
function rejectionOf({ rejectedCount, errors }: StagedResponse): string | undefined {
  if (rejectedCount === 0) return undefined;
  const problemLines = errors
    .slice(0, maxListedErrors)
    .map((problem) => problemLine({ ...problem, place: { source: '' } }));
  const omittedText = errors.length > maxListedErrors ? [`and ${errors.length - maxListedErrors} more`] : [];
  const summary =
    rejectedCount === 1
      ? '1 object is rejected, its last valid version stays'
      : `${rejectedCount} objects are rejected, their last valid versions stay`;
  return `${summary}; all others apply: ${[...problemLines, ...omittedText].join('; ')}`;
}
