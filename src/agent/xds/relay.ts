/** Forwards each direction between Envoy and the control plane independently. Reads from one end only while the other accepts bytes. */

import type { ClientHttp2Stream } from 'node:http2';
import type { Duplex } from 'node:stream';
import { extensionType, listenerType } from '../../../machines/discovery/xds/ads-types.ts';
import { messageOf } from '../../runtime/errors.ts';
import { GrpcError } from '../../runtime/grpc/call-status.ts';
import { type FramePiece, FrameReader, frameHeadBytes, frameOf } from '../../runtime/grpc/grpc-frames.ts';
import type { ServerCall } from '../grpc/grpc-server.ts';
import { type ExtensionFetches, ExtensionResponses } from '../wasm/extension-responses.ts';
import {
  type DiscoveryProtocol,
  envoyTypes,
  type InternalRequest,
  internalRequest,
  readInternal,
  readRequest,
  readSubscriptionNames,
  rejectionOf,
  responseFields,
  typeInRequestStart,
  typeInResponseStart,
  typeOfResponse,
} from './discovery-wire.ts';
import { FieldScanner } from './field-scanner.ts';
import type { XdsActivity } from './xds-activity.ts';

/** A subscription is sent after Envoy's first request for listeners. */
export interface InternalSubscription {
  readonly typeUrl: string;
  /**
   * @param acknowledge must be called; a reason rejects the response. After a rejection, another call may acknowledge the response, unless a newer
   * one was received
   */
  receive(value: Uint8Array, acknowledge: (refusal?: string) => void): void;
  /** The metadata is sent with each acknowledgement. */
  nodeMetadata?(): Readonly<Record<string, string>> | undefined;
}

export interface RelayOptions {
  readonly protocol: DiscoveryProtocol;
  readonly subscriptions: readonly InternalSubscription[];
  readonly activity: XdsActivity;
  readonly report: RelayReport;
  /** The agent may send other requests after this call. */
  readonly subscribed?: () => void;
  /** Absent if extensions are forwarded unchanged. */
  readonly extensionFetches?: ExtensionFetches;
}

export interface RelayReport {
  onResponse(): void;
  downstreamInvalid(reason: string): void;
  upstreamInvalid(reason: string): void;
  /** One end stops (`on`) or resumes accepting bytes. */
  onCongestionChange(side: Side, isCongested: boolean): void;
  /** No client subscribes to the type of a dropped response. */
  onDropped(typeUrl: string): void;
  onRejected(typeUrl: string, nonce: string, reason: string): void;
  /** `nonce` is empty if the message has none. Absent if messages are not recorded. */
  readonly passed?: (to: Side, typeUrl: string, nonce: string) => void;
}

export type Side = 'downstream' | 'upstream';

/** Longer messages are forwarded in chunks, of which only the first bytes are read. */
const wholeBytes = 64 * 1024;
const peekBytes = 16 * 1024;
/** A table of 100,000 names has about 10 MiB. */
const maxInternalBytes = 32 * 1024 * 1024;
/** Shorter congestion is not reported. */
const minCongestionMs = 1_000;
const scannedFieldNumbers: ReadonlySet<number> = new Set(Object.values(responseFields));

export class Relay {
  readonly #call: ServerCall;
  readonly #upstream: ClientHttp2Stream;
  readonly #options: RelayOptions;
  readonly #subscriptions: ReadonlyMap<string, InternalSubscription>;
  readonly #requests = new FrameReader({ wholeBytes, peekBytes });
  readonly #responses = new FrameReader({ wholeBytes, peekBytes });
  readonly #sides: Readonly<Record<Side, CongestedSide>>;
  /** These frames wait for the end of a message that is forwarded in chunks. */
  #pendingFrames: Buffer[] = [];
  #isReadingRequest = false;
  readonly #extensions: ExtensionResponses | undefined;
  /** These responses wait for the end of a response that is forwarded in chunks. */
  #rewrittenFrames: Buffer[] = [];
  #isReadingResponse = false;
  /** A response to the agent that arrives in chunks. */
  #internal: { readonly typeUrl: string; pieces: Buffer[]; bytes: number } | undefined;
  /** `undefined` if messages are not recorded. */
  #scanner: FieldScanner | undefined;
  /** The acknowledgement of a type is `undefined` while the response is pending. */
  readonly #acknowledgements = new Map<string, InternalRequest | undefined>();
  #hasSubscribed = false;
  #hasResponse = false;
  #isStopped = false;

  constructor(call: ServerCall, upstream: ClientHttp2Stream, options: RelayOptions) {
    this.#call = call;
    this.#upstream = upstream;
    this.#options = options;
    this.#subscriptions = new Map(options.subscriptions.map((subscription) => [subscription.typeUrl, subscription]));
    this.#extensions =
      options.extensionFetches &&
      new ExtensionResponses(options.protocol, options.extensionFetches, (message, nonce) =>
        this.#forwardExtensions(message, nonce),
      );
    const reportCongestion = (side: Side) => (isCongested: boolean) =>
      options.report.onCongestionChange(side, isCongested);
    this.#sides = {
      downstream: new CongestedSide(call.stream, upstream, reportCongestion('downstream')),
      upstream: new CongestedSide(upstream, call.stream, reportCongestion('upstream')),
    };
  }

  start(): void {
    const { report } = this.#options;
    const reportInvalidBySide = {
      downstream: (error: unknown) => report.downstreamInvalid(messageOf(error)),
      upstream: (error: unknown) => report.upstreamInvalid(messageOf(error)),
    };
    const readFrames = (from: Duplex, reader: FrameReader, onPiece: (piece: FramePiece) => void, side: Side): void => {
      from.on('data', (chunk: Buffer) => {
        if (this.#isStopped) return;
        try {
          reader.push(chunk, onPiece);
        } catch (error) {
          this.stop();
          reportInvalidBySide[side](error);
        }
      });
    };
    readFrames(this.#upstream, this.#responses, (framePiece) => this.#handleResponse(framePiece), 'upstream');
    readFrames(this.#call.stream, this.#requests, (framePiece) => this.#handleRequest(framePiece), 'downstream');
    this.#call.stream.once('end', () => {
      if (!this.#isStopped) this.#upstream.end();
    });
  }

  stop(): void {
    this.#isStopped = true;
    for (const side of Object.values(this.#sides)) side.stop();
  }

  get hasSubscribed(): boolean {
    return this.#hasSubscribed;
  }

  send(request: InternalRequest): void {
    if (this.#isStopped) return;
    const { protocol, report } = this.#options;
    const frame = frameOf(internalRequest(request, protocol));
    report.passed?.('upstream', request.typeUrl, request.nonce ?? '');
    if (this.#isReadingRequest) this.#pendingFrames.push(frame);
    else this.#sides.upstream.onWritten(this.#upstream.write(frame));
  }

  /** Reports changed node metadata: repeats the last acknowledgement, or waits for the pending one. */
  repeatAcknowledgement(typeUrl: string): void {
    const lastAcknowledgement = this.#acknowledgements.get(typeUrl);
    const nodeMetadata = this.#subscriptions.get(typeUrl)?.nodeMetadata?.();
    if (lastAcknowledgement !== undefined) this.send({ ...lastAcknowledgement, ...(nodeMetadata && { nodeMetadata }) });
  }

  #handleRequest({ bytes, isFirst, isLast }: FramePiece): void {
    const request = isFirst ? this.#readRequest(bytes.subarray(frameHeadBytes), isLast) : undefined;
    const isForListeners = request?.typeUrl === listenerType;
    const frame = request?.refusal === undefined ? bytes : withRefusal(bytes, request.refusal, this.#options.protocol);
    this.#sides.upstream.onWritten(this.#upstream.write(frame));
    this.#isReadingRequest = !isLast;
    if (!isLast) return;
    this.#options.activity.requests++;
    for (const frame of this.#pendingFrames.splice(0)) this.#upstream.write(frame);
    if (isForListeners && !this.#hasSubscribed) this.#subscribe();
  }

  /**
   * A long request acknowledges nothing.
   *
   * @returns type of the request, and why an acknowledgement must become a rejection
   */
  #readRequest(message: Buffer, isComplete: boolean): { typeUrl?: string | undefined; refusal?: string | undefined } {
    const { protocol, report } = this.#options;
    if (!isComplete) return { typeUrl: typeInRequestStart(message, protocol) };
    const { typeUrl, nonce, rejection } = readRequest(message, protocol);
    if (rejection !== undefined) report.onRejected(typeUrl, nonce, rejection);
    report.passed?.('upstream', typeUrl, nonce);
    if (typeUrl === extensionType) this.#extensions?.requested(readSubscriptionNames(message, protocol));
    const refusal = typeUrl === extensionType && nonce !== '' ? this.#extensions?.refusalOf(nonce) : undefined;
    return { typeUrl, refusal: rejection === undefined ? refusal : undefined };
  }

  #subscribe(): void {
    this.#hasSubscribed = true;
    for (const typeUrl of this.#subscriptions.keys()) this.send({ typeUrl });
    this.#options.subscribed?.();
  }

  #handleResponse(framePiece: FramePiece): void {
    if (!this.#hasResponse) this.#options.report.onResponse();
    this.#hasResponse = true;
    const { bytes, isFirst, isLast } = framePiece;
    if (isFirst) this.#internal = this.#internalOf(bytes.subarray(frameHeadBytes), isLast);
    if (this.#internal === undefined) {
      this.#sides.downstream.onWritten(this.#call.write(bytes));
      this.#scanPiece(framePiece);
      this.#isReadingResponse = !isLast;
      if (!isLast) return;
      this.#options.activity.responses++;
      for (const frame of this.#rewrittenFrames.splice(0)) this.#writeExtensions(frame);
      return;
    }
    this.#internal.bytes += bytes.length;
    if (this.#internal.bytes > maxInternalBytes) this.#internal.pieces = [];
    // Copied, because the bytes may be a small part of a large chunk.
    else this.#internal.pieces.push(Buffer.from(bytes));
    if (!isLast) return;
    const { typeUrl, pieces } = this.#internal;
    this.#internal = undefined;
    this.#handleInternal(typeUrl, Buffer.concat(pieces).subarray(frameHeadBytes));
  }

  #scanPiece({ bytes, isFirst, isLast }: FramePiece): void {
    const { passed } = this.#options.report;
    if (passed === undefined) return;
    if (isFirst) this.#scanner = new FieldScanner(scannedFieldNumbers);
    this.#scanner?.push(isFirst ? bytes.subarray(frameHeadBytes) : bytes);
    if (!isLast) return;
    const scannedFields = this.#scanner?.foundFields;
    this.#scanner = undefined;
    passed(
      'downstream',
      scannedFields?.get(responseFields.typeUrl) ?? '',
      scannedFields?.get(responseFields.nonce) ?? '',
    );
  }

  #internalOf(message: Buffer, isComplete: boolean): { typeUrl: string; pieces: Buffer[]; bytes: number } | undefined {
    // A long response without a type in its first bytes starts with a long resource of Envoy.
    const typeUrl = isComplete
      ? (typeOfResponse(message) ?? '')
      : (typeInResponseStart(message, this.#options.protocol) ?? envoyTypes);
    const isRead = this.#extensions !== undefined && typeUrl === extensionType;
    return typeUrl.startsWith(envoyTypes) && !isRead ? undefined : { typeUrl, pieces: [], bytes: 0 };
  }

  settleModule(id: number, moduleOutcome: { readonly file: string } | { readonly reason: string }): void {
    if (!this.#isStopped) this.#extensions?.settle(id, moduleOutcome);
  }

  #forwardExtensions(message: Uint8Array, nonce: string): void {
    this.#options.report.passed?.('downstream', extensionType, nonce);
    if (this.#isReadingResponse) this.#rewrittenFrames.push(frameOf(message));
    else this.#writeExtensions(frameOf(message));
  }

  #writeExtensions(frame: Buffer): void {
    this.#options.activity.responses++;
    this.#sides.downstream.onWritten(this.#call.write(frame));
  }

  #handleInternal(typeUrl: string, message: Buffer): void {
    if (typeUrl === extensionType && this.#extensions !== undefined) {
      if (message.length === 0) {
        throw new GrpcError('RESOURCE_EXHAUSTED', `extensions exceed the limit of ${maxInternalBytes} bytes`);
      }
      this.#extensions.receive(message);
      return;
    }
    const subscription = this.#subscriptions.get(typeUrl);
    if (subscription === undefined || message.length === 0) {
      this.#options.activity.dropped++;
      this.#options.report.onDropped(typeUrl);
      return;
    }
    const { version, nonce, value } = readInternal(message, this.#options.protocol);
    this.#options.report.passed?.('downstream', typeUrl, nonce);
    // A response without a resource is not acknowledged.
    if (value === undefined) return;
    this.#acknowledgements.set(typeUrl, undefined);
    subscription.receive(value, (refusal) => {
      this.#acknowledgements.set(typeUrl, { typeUrl, version, nonce, ...(refusal !== undefined && { refusal }) });
      this.repeatAcknowledgement(typeUrl);
    });
  }
}

function withRefusal(frame: Buffer, refusal: string, protocol: DiscoveryProtocol): Buffer {
  return frameOf(Buffer.concat([frame.subarray(frameHeadBytes), rejectionOf(refusal, protocol)]));
}

class CongestedSide {
  readonly #source: Duplex;
  readonly #target: Duplex;
  readonly #report: (isCongested: boolean) => void;
  #writeTimer: NodeJS.Timeout | undefined;
  #isCongestionReported = false;
  #isStopped = false;

  constructor(target: Duplex, source: Duplex, reportCongestion: (isCongested: boolean) => void) {
    this.#target = target;
    this.#source = source;
    this.#report = reportCongestion;
  }

  /** @param isWritable whether the receiver accepts more bytes */
  onWritten(isWritable: boolean): void {
    if (isWritable || this.#writeTimer !== undefined || this.#isStopped) return;
    this.#source.pause();
    this.#writeTimer = setTimeout(() => {
      this.#isCongestionReported = true;
      this.#report(true);
    }, minCongestionMs);
    this.#target.once('drain', () => this.#onDrained());
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#writeTimer);
  }

  #onDrained(): void {
    if (this.#isStopped) return;
    clearTimeout(this.#writeTimer);
    this.#writeTimer = undefined;
    if (this.#isCongestionReported) this.#report(false);
    this.#isCongestionReported = false;
    this.#source.resume();
  }
}
