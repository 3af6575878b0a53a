/**
 * The bytes between an Envoy's stream and the control plane's: passed on as they come, each direction by itself. Nothing is read of a
 * side that the other one does not take, so what waits has a bound; and one direction never waits for the other.
 */

import type { ClientHttp2Stream } from 'node:http2';
import type { Duplex } from 'node:stream';
import { extensionType, listenerType } from '../../../machines/discovery/xds/ads-types.ts';
import { messageOf } from '../../runtime/errors.ts';
import { GrpcError } from '../../runtime/grpc/call-status.ts';
import { type FramePiece, FrameReader, frameHeadBytes, frameOf } from '../../runtime/grpc/grpc-frames.ts';
import type { ServerCall } from '../grpc/grpc-server.ts';
import { type ExtensionFetches, ExtensionResponses } from '../wasm/extension-responses.ts';
import {
  envoyTypes,
  type InternalRequest,
  internalRequest,
  namesIn,
  type Protocol,
  readInternal,
  readRequest,
  rejectionOf,
  responseFields,
  typeOfBeginning,
  typeOfRequestBeginning,
  typeOfResponse,
} from './discovery-wire.ts';
import { FieldScanner } from './field-scanner.ts';
import type { XdsActivity } from './xds-activity.ts';

/** A subscription of the agent's own, put after Envoy's first request for listeners (spec/agent.md §8.3). */
export interface InternalSubscription {
  readonly typeUrl: string;
  /**
   * Takes the first resource of a response.
   *
   * @param answer to be called once: without a refusal it acknowledges
   */
  take(value: Uint8Array, answer: (refusal?: string) => void): void;
  /** What each answer says of the node; undefined: nothing. */
  nodeMetadata?(): Readonly<Record<string, string>> | undefined;
}

export interface RelayOptions {
  readonly protocol: Protocol;
  readonly subscriptions: readonly InternalSubscription[];
  readonly activity: XdsActivity;
  readonly report: RelayReport;
  /** The agent's own subscriptions are made: from now on it may say more. */
  readonly subscribed?: () => void;
  /** Fetches Wasm modules; absent: extensions are forwarded unchanged. */
  readonly extensionFetches?: ExtensionFetches;
}

export interface RelayReport {
  answered(): void;
  /** What came from Envoy's side is no discovery request. */
  downstreamInvalid(reason: string): void;
  /** What came from the control plane is no discovery response. */
  upstreamInvalid(reason: string): void;
  /** A side takes no more bytes, or does again. */
  congested(side: Side, on: boolean): void;
  /** A message of a type that is nobody's here. */
  dropped(typeUrl: string): void;
  /** Envoy rejects what it was sent. */
  rejected(typeUrl: string, nonce: string, reason: string): void;
  /** Each message that goes from one side to the other, with an empty nonce where it has none. Absent: nobody wants to know. */
  readonly passed?: (to: Side, typeUrl: string, nonce: string) => void;
}

export type Side = 'downstream' | 'upstream';

/** Messages up to this are read whole; of longer ones the beginning says whose they are. */
const wholeBytes = 64 * 1024;
const peekBytes = 16 * 1024;
/** A message to the agent itself: a table of 100,000 names has some 10 MiB. */
const mostInternalBytes = 32 * 1024 * 1024;
/** A side that is not congested for longer is not worth a word. */
const wordAfterMs = 1_000;
const scanned: ReadonlySet<number> = new Set(Object.values(responseFields));

export class Relay {
  readonly #call: ServerCall;
  readonly #upstream: ClientHttp2Stream;
  readonly #options: RelayOptions;
  readonly #subscriptions: ReadonlyMap<string, InternalSubscription>;
  readonly #requests = new FrameReader({ wholeBytes, peekBytes });
  readonly #responses = new FrameReader({ wholeBytes, peekBytes });
  readonly #sides: Readonly<Record<Side, CongestedSide>>;
  /** The agent's own messages, which wait for the end of a message that is passed on in pieces. */
  #own: Buffer[] = [];
  #isInRequest = false;
  /** Absent: extensions are forwarded unchanged. */
  readonly #extensions: ExtensionResponses | undefined;
  /** Rewritten responses, which wait for the end of a response that is forwarded in pieces. */
  #rewritten: Buffer[] = [];
  #isInResponse = false;
  /** A message to the agent that comes in pieces; undefined: there is none, or what comes is Envoy's. */
  #internal: { readonly typeUrl: string; pieces: Buffer[]; bytes: number } | undefined;
  /** Looks for what a response to Envoy is about; undefined: nobody asks. */
  #scanner: FieldScanner | undefined;
  /** What the last response of each type was answered with; undefined: it waits for its answer. */
  readonly #answers = new Map<string, InternalRequest | undefined>();
  #hasSubscribed = false;
  #hasAnswered = false;
  #isStopped = false;

  constructor(call: ServerCall, upstream: ClientHttp2Stream, options: RelayOptions) {
    this.#call = call;
    this.#upstream = upstream;
    this.#options = options;
    this.#subscriptions = new Map(options.subscriptions.map((one) => [one.typeUrl, one]));
    this.#extensions =
      options.extensionFetches &&
      new ExtensionResponses(options.protocol, options.extensionFetches, (message, nonce) =>
        this.#forwardExtensions(message, nonce),
      );
    const tell = (side: Side) => (on: boolean) => options.report.congested(side, on);
    this.#sides = {
      downstream: new CongestedSide(call.stream, upstream, tell('downstream')),
      upstream: new CongestedSide(upstream, call.stream, tell('upstream')),
    };
  }

  start(): void {
    const { report } = this.#options;
    const invalid = {
      downstream: (error: unknown) => report.downstreamInvalid(messageOf(error)),
      upstream: (error: unknown) => report.upstreamInvalid(messageOf(error)),
    };
    const read = (from: Duplex, reader: FrameReader, take: (piece: FramePiece) => void, side: Side): void => {
      from.on('data', (chunk: Buffer) => {
        if (this.#isStopped) return;
        try {
          reader.push(chunk, take);
        } catch (error) {
          this.stop();
          invalid[side](error);
        }
      });
    };
    read(this.#upstream, this.#responses, (piece) => this.#takeResponse(piece), 'upstream');
    read(this.#call.stream, this.#requests, (piece) => this.#takeRequest(piece), 'downstream');
    this.#call.stream.once('end', () => {
      if (!this.#isStopped) this.#upstream.end();
    });
  }

  /** Passes on no more. */
  stop(): void {
    this.#isStopped = true;
    for (const side of Object.values(this.#sides)) side.stop();
  }

  get hasSubscribed(): boolean {
    return this.#hasSubscribed;
  }

  /** Sends a request of the agent's own, between two of Envoy's. */
  send(request: InternalRequest): void {
    if (this.#isStopped) return;
    const { protocol, report } = this.#options;
    const frame = frameOf(internalRequest(request, protocol));
    report.passed?.('upstream', request.typeUrl, request.nonce ?? '');
    if (this.#isInRequest) this.#own.push(frame);
    else this.#sides.upstream.wrote(this.#upstream.write(frame));
  }

  /** The node has something new to say: it is said by answering once more, or by the answer that a response waits for. */
  answerAgain(typeUrl: string): void {
    const answer = this.#answers.get(typeUrl);
    const nodeMetadata = this.#subscriptions.get(typeUrl)?.nodeMetadata?.();
    if (answer !== undefined) this.send({ ...answer, ...(nodeMetadata && { nodeMetadata }) });
  }

  #takeRequest({ bytes, isFirst, isLast }: FramePiece): void {
    const request = isFirst ? this.#readRequest(bytes.subarray(frameHeadBytes), isLast) : undefined;
    const isForListeners = request?.typeUrl === listenerType;
    const frame = request?.refusal === undefined ? bytes : withRefusal(bytes, request.refusal, this.#options.protocol);
    this.#sides.upstream.wrote(this.#upstream.write(frame));
    this.#isInRequest = !isLast;
    if (!isLast) return;
    this.#options.activity.requests++;
    for (const frame of this.#own.splice(0)) this.#upstream.write(frame);
    if (isForListeners && !this.#hasSubscribed) this.#subscribe();
  }

  /**
   * Reports Envoy's request. Long requests subscribe to many names, and acknowledge nothing.
   *
   * @returns its type, and why an acknowledgement must become a rejection
   */
  #readRequest(message: Buffer, isWhole: boolean): { typeUrl?: string | undefined; refusal?: string | undefined } {
    const { protocol, report } = this.#options;
    if (!isWhole) return { typeUrl: typeOfRequestBeginning(message, protocol) };
    const { typeUrl, nonce, rejection } = readRequest(message, protocol);
    if (rejection !== undefined) report.rejected(typeUrl, nonce, rejection);
    report.passed?.('upstream', typeUrl, nonce);
    if (typeUrl === extensionType) this.#extensions?.requested(namesIn(message, protocol));
    const refusal = typeUrl === extensionType && nonce !== '' ? this.#extensions?.refusalOf(nonce) : undefined;
    return { typeUrl, refusal: rejection === undefined ? refusal : undefined };
  }

  #subscribe(): void {
    this.#hasSubscribed = true;
    for (const typeUrl of this.#subscriptions.keys()) this.send({ typeUrl });
    this.#options.subscribed?.();
  }

  #takeResponse(piece: FramePiece): void {
    if (!this.#hasAnswered) this.#options.report.answered();
    this.#hasAnswered = true;
    const { bytes, isFirst, isLast } = piece;
    if (isFirst) this.#internal = this.#internalOf(bytes.subarray(frameHeadBytes), isLast);
    if (this.#internal === undefined) {
      this.#sides.downstream.wrote(this.#call.write(bytes));
      this.#follow(piece);
      this.#isInResponse = !isLast;
      if (!isLast) return;
      this.#options.activity.responses++;
      for (const frame of this.#rewritten.splice(0)) this.#writeExtensions(frame);
      return;
    }
    this.#internal.bytes += bytes.length;
    if (this.#internal.bytes > mostInternalBytes) this.#internal.pieces = [];
    // A copy: the piece may be a small part of a large chunk.
    else this.#internal.pieces.push(Buffer.from(bytes));
    if (!isLast) return;
    const { typeUrl, pieces } = this.#internal;
    this.#internal = undefined;
    this.#takeInternal(typeUrl, Buffer.concat(pieces).subarray(frameHeadBytes));
  }

  #follow({ bytes, isFirst, isLast }: FramePiece): void {
    const { passed } = this.#options.report;
    if (passed === undefined) return;
    if (isFirst) this.#scanner = new FieldScanner(scanned);
    this.#scanner?.push(isFirst ? bytes.subarray(frameHeadBytes) : bytes);
    if (!isLast) return;
    const found = this.#scanner?.found;
    this.#scanner = undefined;
    passed('downstream', found?.get(responseFields.typeUrl) ?? '', found?.get(responseFields.nonce) ?? '');
  }

  /** Undefined: it is Envoy's. */
  #internalOf(message: Buffer, isWhole: boolean): { typeUrl: string; pieces: Buffer[]; bytes: number } | undefined {
    // What the beginning of a long message does not tell is a long resource of Envoy's.
    const typeUrl = isWhole
      ? (typeOfResponse(message) ?? '')
      : (typeOfBeginning(message, this.#options.protocol) ?? envoyTypes);
    const isRead = this.#extensions !== undefined && typeUrl === extensionType;
    return typeUrl.startsWith(envoyTypes) && !isRead ? undefined : { typeUrl, pieces: [], bytes: 0 };
  }

  /** A module of a response is in a file, or could not be fetched. */
  settleModule(id: number, outcome: { readonly file: string } | { readonly reason: string }): void {
    if (!this.#isStopped) this.#extensions?.settle(id, outcome);
  }

  #forwardExtensions(message: Uint8Array, nonce: string): void {
    this.#options.report.passed?.('downstream', extensionType, nonce);
    if (this.#isInResponse) this.#rewritten.push(frameOf(message));
    else this.#writeExtensions(frameOf(message));
  }

  #writeExtensions(frame: Buffer): void {
    this.#options.activity.responses++;
    this.#sides.downstream.wrote(this.#call.write(frame));
  }

  #takeInternal(typeUrl: string, message: Buffer): void {
    if (typeUrl === extensionType && this.#extensions !== undefined) {
      if (message.length === 0) {
        throw new GrpcError('RESOURCE_EXHAUSTED', `extensions exceed the limit of ${mostInternalBytes} bytes`);
      }
      this.#extensions.take(message);
      return;
    }
    const subscription = this.#subscriptions.get(typeUrl);
    if (subscription === undefined || message.length === 0) {
      this.#options.activity.dropped++;
      this.#options.report.dropped(typeUrl);
      return;
    }
    const { version, nonce, value } = readInternal(message, this.#options.protocol);
    this.#options.report.passed?.('downstream', typeUrl, nonce);
    // A response without a resource is not acknowledged either (spec/agent.md §8.3).
    if (value === undefined) return;
    this.#answers.set(typeUrl, undefined);
    subscription.take(value, (refusal) => {
      this.#answers.set(typeUrl, { typeUrl, version, nonce, ...(refusal !== undefined && { refusal }) });
      this.answerAgain(typeUrl);
    });
  }
}

/** The request with a reason why it rejects what it acknowledged. */
function withRefusal(frame: Buffer, refusal: string, protocol: Protocol): Buffer {
  return frameOf(Buffer.concat([frame.subarray(frameHeadBytes), rejectionOf(refusal, protocol)]));
}

/** Where bytes are written to, and who is not read while they are not taken. */
class CongestedSide {
  readonly #source: Duplex;
  readonly #target: Duplex;
  readonly #tell: (on: boolean) => void;
  #word: NodeJS.Timeout | undefined;
  #isTold = false;
  #isStopped = false;

  constructor(target: Duplex, source: Duplex, tell: (on: boolean) => void) {
    this.#target = target;
    this.#source = source;
    this.#tell = tell;
  }

  /** @param hasRoom whether the target takes more */
  wrote(hasRoom: boolean): void {
    if (hasRoom || this.#word !== undefined || this.#isStopped) return;
    this.#source.pause();
    this.#word = setTimeout(() => {
      this.#isTold = true;
      this.#tell(true);
    }, wordAfterMs);
    this.#target.once('drain', () => this.#drained());
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#word);
  }

  #drained(): void {
    if (this.#isStopped) return;
    clearTimeout(this.#word);
    this.#word = undefined;
    if (this.#isTold) this.#tell(false);
    this.#isTold = false;
    this.#source.resume();
  }
}
