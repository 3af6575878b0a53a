import { keepRecentlyUsed } from '../requests/recently-used.ts';
import type { EncodedResource } from '../resource-source.ts';
import { allocateBuffer, concatChunks, encodedLength, WireWriter } from './wire.ts';

export interface ResponseHead {
  readonly typeUrl: string;
  readonly version: string;
  readonly nonce: string;
  /** In delta responses, names that the client must remove. */
  readonly removedNames: readonly string[];
  /** Field that {@link encodeControlPlane} encodes. */
  readonly controlPlane?: Uint8Array;
}

export interface ResponseParts {
  /** Version, type, nonce and removed names. */
  readonly head: Uint8Array;
  /** Frames of the resources in order, shared with other responses. */
  readonly trailingChunks: readonly Uint8Array[];
}

export type ResponseResources = ReadonlyMap<string, EncodedResource> | readonly EncodedResource[];

/** Equal in DiscoveryResponse and DeltaDiscoveryResponse, except for removed names. */
const field = { version: 1, typeUrl: 4, nonce: 5, removed: 6 } as const;

/** Encodes all fields except resources in one piece, because protobuf fields may have any order. */
export function encodeHead(responseHead: ResponseHead): Buffer {
  const length =
    textLength(field.version, responseHead.version) +
    textLength(field.typeUrl, responseHead.typeUrl) +
    textLength(field.nonce, responseHead.nonce) +
    responseHead.removedNames.reduce((sum, name) => sum + encodedLength(field.removed, name), 0) +
    (responseHead.controlPlane?.length ?? 0);
  const writer = new WireWriter(Buffer.allocUnsafe(length));
  if (responseHead.version !== '') writer.text(field.version, responseHead.version);
  if (responseHead.typeUrl !== '') writer.text(field.typeUrl, responseHead.typeUrl);
  if (responseHead.nonce !== '') writer.text(field.nonce, responseHead.nonce);
  for (const name of responseHead.removedNames) writer.text(field.removed, name);
  if (responseHead.controlPlane !== undefined) writer.writeRaw(responseHead.controlPlane);
  return writer.finish();
}

/** The number of the field differs between the protocols. */
export interface ControlPlaneFields {
  readonly sotwField: Uint8Array;
  readonly deltaField: Uint8Array;
}

export function encodeControlPlane(identifier: string): ControlPlaneFields {
  const encodeField = (number: number): Uint8Array => {
    const content = encodedLength(1, identifier);
    const writer = new WireWriter(allocateBuffer(encodedLength(number, content)));
    writer.header(number, content);
    writer.text(1, identifier);
    return writer.finish();
  };
  return { sotwField: encodeField(6), deltaField: encodeField(7) };
}

function textLength(number: number, text: string): number {
  return text === '' ? 0 : encodedLength(number, text);
}

export function byteLengthOf({ head, trailingChunks }: ResponseParts): number {
  let length = head.length;
  for (const frame of trailingChunks) length += frame.length;
  return length;
}

/** Enough for some complete types, for a few proxy shapes and both protocols. The original frames stay in memory too. */
const maxKeptBytes = 32 * 1024 * 1024;

/** Number of sends in pieces after which a response is joined, because each piece costs every stream a write. */
const maxSendsInPieces = 16;
/** Larger responses are not cached in addition to their pieces. */
const maxWholeBytes = 16 * 1024 * 1024;

type FrameSource = ResponseResources | EncodedResource;

/** Caches joined frames, so that a push of the same resources to many streams joins them once. Keys are the collections and resources themselves. */
export class SharedBodies {
  readonly #bodies = {
    sotw: keepRecentlyUsed<ResponseResources, SharedBody>(maxKeptBytes / 2, bytesOf),
    delta: keepRecentlyUsed<ResponseResources, SharedBody>(maxKeptBytes / 2, bytesOf),
  };
  readonly #wholeMessages = {
    sotw: keepRecentlyUsed<FrameSource, readonly [Uint8Array]>(maxWholeBytes / 2, ([message]) => message.length),
    delta: keepRecentlyUsed<FrameSource, readonly [Uint8Array]>(maxWholeBytes / 2, ([message]) => message.length),
  };
  readonly #sendCounts = { sotw: new WeakMap<FrameSource, number>(), delta: new WeakMap<FrameSource, number>() };

  framesOf(resources: ResponseResources, delta: boolean): readonly Uint8Array[] {
    if (countOf(resources) > 1)
      return this.#joinedMessage(resources, delta, () => this.#joinedFrames(resources, delta));
    for (const resource of resources.values())
      return this.#joinedMessage(resource, delta, () => frameOf(resource, delta));
    return [];
  }

  #joinedFrames(resources: ResponseResources, delta: boolean): readonly Uint8Array[] {
    const bodies = this.#bodies[delta ? 'delta' : 'sotw'];
    let body = bodies.get(resources);
    if (body === undefined) {
      body = joinFrames(framesOf(resources, delta));
      bodies.set(resources, body);
    }
    return body.bodyChunks;
  }

  /** Rarely sent pieces stay shared with other bodies. */
  #joinedMessage(
    sentResources: FrameSource,
    delta: boolean,
    splitIntoPieces: () => readonly Uint8Array[],
  ): readonly Uint8Array[] {
    const protocol = delta ? 'delta' : 'sotw';
    const cachedMessages = this.#wholeMessages[protocol];
    const cachedMessage = cachedMessages.get(sentResources);
    if (cachedMessage !== undefined) return cachedMessage;
    const chunks = splitIntoPieces();
    if (chunks.length === 1) return chunks;
    const sendCountOf = this.#sendCounts[protocol];
    const times = (sendCountOf.get(sentResources) ?? 0) + 1;
    if (times <= maxSendsInPieces) {
      sendCountOf.set(sentResources, times);
      return chunks;
    }
    // If an entry was evicted, joining again is worthwhile only after the same number of sends.
    sendCountOf.delete(sentResources);
    const joinedMessage = [concatChunks(chunks)] as const;
    cachedMessages.set(sentResources, joinedMessage);
    return joinedMessage;
  }
}

interface SharedBody {
  readonly bodyChunks: readonly Uint8Array[];
  readonly copiedBytes: number;
}

/** Larger frames are not copied, because several bodies can share them, and a copy costs more than a write. */
const minPieceBytes = 4 * 1024;

function joinFrames(frames: readonly Uint8Array[]): SharedBody {
  const chunks: Uint8Array[] = [];
  let copiedBytes = 0;
  let pendingSmallFrames: Uint8Array[] = [];
  const join = (): void => {
    if (pendingSmallFrames.length === 0) return;
    const joinedChunk = concatChunks(pendingSmallFrames);
    copiedBytes += joinedChunk.length;
    chunks.push(joinedChunk);
    pendingSmallFrames = [];
  };
  for (const frame of frames) {
    if (frame.length < minPieceBytes) {
      pendingSmallFrames.push(frame);
      continue;
    }
    join();
    chunks.push(frame);
  }
  join();
  return { bodyChunks: chunks, copiedBytes: copiedBytes };
}

/** Approximate memory of an entry and of each joined resource, without bytes. */
const entryBytes = 1_000;
const resourceBytes = 1_000;

function bytesOf({ copiedBytes }: SharedBody, resources: ResponseResources): number {
  return copiedBytes + entryBytes + countOf(resources) * resourceBytes;
}

export function countOf(resources: ResponseResources): number {
  return 'size' in resources ? resources.size : resources.length;
}

function framesOf(resources: ResponseResources, delta: boolean): Uint8Array[] {
  const frames: Uint8Array[] = [];
  for (const resource of resources.values()) frames.push(...frameOf(resource, delta));
  return frames;
}

export function frameOf({ deltaFrame, sotwFrame, tailChunks }: EncodedResource, delta: boolean): readonly Uint8Array[] {
  return [delta ? deltaFrame : sotwFrame, ...tailChunks];
}
