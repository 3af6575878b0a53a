/** One stream to a source of configuration over xDS: the effect of the chart `xds-source`. It decodes, and applies what the chart orders. */
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
import { Allowance, type Pace } from '../../../runtime/fences/allowance.ts';
import { GrpcError } from '../../../runtime/grpc/call-status.ts';
import {
  defaultGrpcLimits,
  GrpcConnection,
  type GrpcConnectionLimits,
  type GrpcTarget,
  whenEnded,
} from '../../../runtime/grpc/grpc-client.ts';
import { FrameReader, frameHeadBytes, frameOf } from '../../../runtime/grpc/grpc-frames.ts';
import type { Logger } from '../../../runtime/output/log.ts';
import { OneByOne, Turns } from '../../../runtime/turns.ts';
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
  /** Read for each connection: certificates and tokens are replaced while the program runs. */
  readonly connection: () => Promise<SourceConnection>;
  readonly log: Logger;
  readonly maxMessageBytes: number;
  readonly maxObjects: number;
  /** Responses that are read at once, and then each second; the server waits meanwhile. */
  readonly pace: Pace;
  /** Objects of the kind changed, or are to be saved. */
  readonly applied: (kind: KindName, isChanged: boolean) => void;
  readonly counted: (outcome: 'accepted' | 'rejected') => void;
  readonly limits?: GrpcConnectionLimits;
  readonly random?: () => number;
}

/** Errors that a rejection lists; the log and the status have all. */
const maxListedErrors = 10;

type Report = SourceStreamOpened | SourceResponseReceived | SourceStreamEnded;

export function sourceStream(options: SourceStreamOptions) {
  return fromCallback<XdsSourceOrder, { protocol: XdsProtocol }>(({ input, sendBack, receive }) => {
    const stop = new AbortController();
    const stream = new SourceStream(options, input.protocol, stop.signal, (event) => {
      if (!stop.signal.aborted) sendBack(event);
    });
    receive((order) => stream.execute(order));
    void stream.begin();
    return () => {
      stop.abort();
      stream.close();
    };
  });
}

/** What is known of a type on this stream. */
interface Subscription {
  readonly kind: KindName;
  readonly typeUrl: string;
  /** Of the last accepted response. */
  version: string;
}

interface Waiting {
  readonly subscription: Subscription;
  readonly response: StagedResponse;
  readonly version: string;
  readonly settle: () => void;
}

class SourceStream {
  readonly #options: SourceStreamOptions;
  readonly #protocol: XdsProtocol;
  readonly #stopped: AbortSignal;
  readonly #report: (event: Report) => void;
  readonly #subscriptions = new Map<string, Subscription>();
  /** The type by which the server sends a kind: one of several spellings. */
  readonly #spelling = new Map<KindName, string>();
  /** Those in which the server has sent objects. */
  readonly #filled = new Set<string>();
  /** Names whose deletion is paused. */
  readonly #paused = new Map<KindName, readonly string[]>();
  /** Responses that the chart decides about, by nonce and type. */
  readonly #waiting = new Map<string, Waiting>();
  readonly #inOrder = new OneByOne();
  readonly #allowance: Allowance;
  #connection: GrpcConnection | undefined;
  #stream: ClientHttp2Stream | undefined;
  #isOver = false;

  constructor(
    options: SourceStreamOptions,
    protocol: XdsProtocol,
    stopped: AbortSignal,
    report: (event: Report) => void,
  ) {
    this.#options = options;
    this.#protocol = protocol;
    this.#stopped = stopped;
    this.#report = report;
    this.#allowance = new Allowance(options.pace);
  }

  async begin(): Promise<void> {
    try {
      const { target, headers } = await this.#options.connection();
      this.#stopped.throwIfAborted();
      this.#connection = await GrpcConnection.open(target, this.#options.limits ?? defaultGrpcLimits, this.#stopped);
      if (this.#stopped.aborted) {
        this.#connection.close();
        return;
      }
      this.#open(this.#connection, headers);
    } catch (error) {
      const code = error instanceof GrpcError ? error.code : 'UNAVAILABLE';
      this.#end(code, error instanceof GrpcError ? error.details : explainInOneLine(error));
    }
  }

  #open(connection: GrpcConnection, headers: Readonly<Record<string, string>>): void {
    const stream = connection.start(streamMethods[this.#protocol], headers);
    this.#stream = stream;
    const { maxMessageBytes } = this.#options;
    const reader = new FrameReader({ wholeBytes: maxMessageBytes, maxBytes: maxMessageBytes });
    stream.on('data', (chunk: Buffer) => {
      try {
        reader.push(chunk, ({ bytes }) => this.#take(bytes.subarray(frameHeadBytes)));
      } catch (error) {
        this.#end('RESOURCE_EXHAUSTED', error instanceof GrpcError ? error.details : messageOf(error));
      }
    });
    whenEnded(stream, connection, (status) => {
      const { code, details, retryAfterMs } = status ?? new GrpcError('UNAVAILABLE', 'the server closed the stream');
      this.#end(code, details, retryAfterMs);
    });
    this.#send({ typeUrl: meshConfigType, node: this.#options.node });
    for (const kind of configKinds) this.#subscribe(kind, typesOf(kind, this.#options.versions)[0]!);
    this.#report({ type: 'source-stream.opened' });
  }

  #subscribe(kind: KindName, typeUrl: string): void {
    if (this.#subscriptions.has(typeUrl)) return;
    this.#subscriptions.set(typeUrl, { kind, typeUrl, version: '' });
    const isFirst = this.#spelling.get(kind) === undefined;
    if (isFirst) this.#spelling.set(kind, typeUrl);
    this.#send({ typeUrl, ...(isFirst && { initialVersions: this.#options.objects().versionsOf(kind) }) });
  }

  /** One after the other; the server waits while one is decoded. */
  #take(message: Buffer): void {
    this.#stream?.pause();
    // The bytes may share the memory of what was read with them.
    void this.#inOrder
      .do(() => this.#read(message))
      .catch((error: unknown) => this.#end('INTERNAL', messageOf(error)))
      .finally(() => this.#stream?.resume());
  }

  async #read(message: Buffer): Promise<void> {
    while (!this.#allowance.take()) await delay(100, undefined, { signal: this.#stopped });
    if (this.#isOver || this.#stopped.aborted) return;
    const { objects, maxObjects } = this.#options;
    const response = decodeResponse(message, this.#protocol, maxObjects);
    const kind = kindOfType(response.typeUrl);
    const subscription = this.#subscriptionOf(response.typeUrl);
    // MeshConfig among them, which Istio's client does not acknowledge either.
    if (kind === undefined || subscription === undefined) return;
    const turns = new Turns();
    const staged = this.#withPaused(await turns.through(objects().stage(kind, response.resources, response.removed)));
    if (this.#isOver || this.#stopped.aborted) return;
    const { nonce, version } = response;
    if (staged.refusal !== undefined) {
      this.#options.log.error('config-source.responseRejected', { kind, reason: staged.refusal });
      this.#acknowledge(subscription, nonce, version, `the response ${staged.refusal}; the last objects stay`);
      return;
    }
    if (!this.#isOfSpelling(kind, subscription.typeUrl, staged)) {
      this.#acknowledge(subscription, nonce, version);
      return;
    }
    await new Promise<void>((settle) => {
      this.#waiting.set(`${kind} ${nonce}`, { subscription, response: staged, version, settle });
      const { known, removed, rejected } = staged;
      this.#report({ type: 'source-response.received', kind, nonce, known, removed: removed.length, rejected });
    });
  }

  /** A delta response names what it removes once: what was paused stays removed until it is sent again. */
  #withPaused(response: StagedResponse): StagedResponse {
    const before = this.#protocol === 'delta' ? (this.#paused.get(response.kind) ?? []) : [];
    if (before.length === 0) return response;
    const again = before.filter((name) => !response.present.has(name));
    return { ...response, removed: [...new Set([...again, ...response.removed])] };
  }

  #subscriptionOf(typeUrl: string): Subscription | undefined {
    return this.#subscriptions.get(typeUrl) ?? this.#subscriptions.get(typeUrl.slice(typeUrl.indexOf('/') + 1));
  }

  /** A server may know a kind by one version of its type and respond to the others with nothing. */
  #isOfSpelling(kind: KindName, typeUrl: string, { sent, removed, known }: StagedResponse): boolean {
    const own = this.#spelling.get(kind) ?? '';
    if (own === typeUrl) {
      if (sent === 0 && removed.length === known) {
        this.#filled.delete(own);
        this.#requestOthers(kind);
      } else this.#filled.add(own);
      return true;
    }
    if (sent === 0 || this.#filled.has(own)) return false;
    this.#spelling.set(kind, typeUrl);
    this.#filled.add(typeUrl);
    return true;
  }

  #requestOthers(kind: KindName): void {
    for (const typeUrl of typesOf(kind, this.#options.versions)) this.#subscribe(kind, typeUrl);
  }

  execute(order: XdsSourceOrder): void {
    if (this.#isOver) return;
    switch (order.type) {
      case 'source-response.apply':
        this.#apply(order.kind as KindName, order.nonce, order.deletions === 'apply');
        break;
      case 'source-deletions.apply':
        for (const kind of order.kinds as KindName[]) this.#applyPaused(kind);
        break;
      case 'source-versions.request':
        for (const kind of order.kinds as KindName[]) this.#requestOthers(kind);
        break;
    }
  }

  #apply(kind: KindName, nonce: string, deletes: boolean): void {
    const waiting = this.#waiting.get(`${kind} ${nonce}`);
    if (waiting === undefined) return;
    this.#waiting.delete(`${kind} ${nonce}`);
    const { subscription, response, version, settle } = waiting;
    const isChanged = this.#options.objects().apply(response, deletes);
    if (deletes) this.#paused.delete(kind);
    else this.#pause(kind, response);
    this.#options.applied(kind, isChanged);
    this.#acknowledge(subscription, nonce, version, rejectionOf(response));
    settle();
  }

  #pause(kind: KindName, { removed }: StagedResponse): void {
    if (!this.#paused.has(kind)) {
      this.#options.log.warn('config-source.deletionsPaused', { kind, objects: removed.length });
    }
    this.#paused.set(kind, removed);
  }

  #applyPaused(kind: KindName): void {
    const names = this.#paused.get(kind);
    if (names === undefined) return;
    this.#paused.delete(kind);
    this.#options.log.warn('config-source.deletionsApplied', { kind, objects: names.length });
    this.#options.applied(kind, this.#options.objects().delete(kind, names));
  }

  #acknowledge(subscription: Subscription, nonce: string, version: string, rejection?: string): void {
    this.#options.counted(rejection === undefined ? 'accepted' : 'rejected');
    if (rejection === undefined) subscription.version = version;
    const { typeUrl } = subscription;
    this.#send({ typeUrl, version: subscription.version, nonce, ...(rejection !== undefined && { rejection }) });
  }

  #send(request: SourceRequest): void {
    const stream = this.#stream;
    if (stream === undefined || stream.closed || stream.destroyed || stream.writableEnded) return;
    stream.write(frameOf(encodeRequest(request, this.#protocol)));
  }

  #end(code: string, reason: string, retryAfterMs = 0): void {
    if (this.#isOver) return;
    this.close();
    if (this.#stopped.aborted) return;
    const { random = Math.random } = this.#options;
    this.#report({ type: 'source-stream.ended', code, reason, retryAfterMs, chance: random() });
  }

  /** Ends the stream and whatever waits for the chart. */
  close(): void {
    this.#isOver = true;
    for (const { settle } of this.#waiting.values()) settle();
    this.#waiting.clear();
    this.#connection?.close();
  }
}

/** `2 objects rejected, their last valid versions stay: VirtualService shop/web: spec.hosts: must not be empty; …`. */
function rejectionOf({ rejected, errors }: StagedResponse): string | undefined {
  if (rejected === 0) return undefined;
  const listed = errors.slice(0, maxListedErrors).map((problem) => problemLine({ ...problem, place: { source: '' } }));
  const more = errors.length > maxListedErrors ? [`and ${errors.length - maxListedErrors} more`] : [];
  const what =
    rejected === 1
      ? '1 object is rejected, its last valid version stays'
      : `${rejected} objects are rejected, their last valid versions stay`;
  return `${what}; all others apply: ${[...listed, ...more].join('; ')}`;
}
