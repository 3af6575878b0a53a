/** Puts discovery responses together from resources that are encoded already. */
import { keepRecentlyUsed } from '../requests/recently-used.ts';
import type { EncodedResource } from '../resource-source.ts';
import { encodedLength, keptBuffer, keptConcat, WireWriter } from './wire.ts';

export interface ResponseHead {
  readonly typeUrl: string;
  readonly version: string;
  readonly nonce: string;
  /** Delta: names that the client should drop. */
  readonly removed: readonly string[];
  /** The field `control_plane`, encoded by {@link encodeControlPlane}. */
  readonly controlPlane?: Uint8Array;
}

/** The parts of a response: a few bytes of its own, and bytes that many responses share. */
export interface ResponseParts {
  /** Version, type, nonce and removed names. */
  readonly own: Uint8Array;
  /** The resources' frames, in order. */
  readonly shared: readonly Uint8Array[];
}

export type Resources = ReadonlyMap<string, EncodedResource> | readonly EncodedResource[];

/** Field numbers of DiscoveryResponse and of DeltaDiscoveryResponse agree in all but the removed names. */
const field = { version: 1, typeUrl: 4, nonce: 5, removed: 6 } as const;

/** Fields may come in any order, so what is a response's own is in one piece. */
export function encodeHead(head: ResponseHead): Buffer {
  const length =
    textLength(field.version, head.version) +
    textLength(field.typeUrl, head.typeUrl) +
    textLength(field.nonce, head.nonce) +
    head.removed.reduce((sum, name) => sum + encodedLength(field.removed, name), 0) +
    (head.controlPlane?.length ?? 0);
  const writer = new WireWriter(Buffer.allocUnsafe(length));
  if (head.version !== '') writer.text(field.version, head.version);
  if (head.typeUrl !== '') writer.text(field.typeUrl, head.typeUrl);
  if (head.nonce !== '') writer.text(field.nonce, head.nonce);
  for (const name of head.removed) writer.text(field.removed, name);
  if (head.controlPlane !== undefined) writer.raw(head.controlPlane);
  return writer.finish();
}

/** The field `control_plane` of all responses of a server: which server they are from. Its number differs between the protocols. */
export interface ControlPlaneFields {
  readonly sotw: Uint8Array;
  readonly delta: Uint8Array;
}

/** @param identifier `ControlPlane.identifier` */
export function encodeControlPlane(identifier: string): ControlPlaneFields {
  const encoded = (number: number): Uint8Array => {
    const content = encodedLength(1, identifier);
    const writer = new WireWriter(keptBuffer(encodedLength(number, content)));
    writer.header(number, content);
    writer.text(1, identifier);
    return writer.finish();
  };
  return { sotw: encoded(6), delta: encoded(7) };
}

function textLength(number: number, text: string): number {
  return text === '' ? 0 : encodedLength(number, text);
}

/** How long a response is. */
export function bytesIn({ own, shared }: ResponseParts): number {
  let length = own.length;
  for (const frame of shared) length += frame.length;
  return length;
}

/**
 * Bytes of joined frames that are kept: a few whole types, for a few shapes of proxies and both protocols. What they were
 * joined from is kept with them.
 */
const maxKeptBytes = 32 * 1024 * 1024;

/** What was sent so often in pieces is sent in one from then on: each piece costs every stream a write of its own. */
const sendingsInPieces = 16;
/** Limit of responses that are kept in one piece, beside their pieces: those that all sidecars of a few shapes and namespaces are sent. */
const maxWholeBytes = 16 * 1024 * 1024;

/** What has a body: several resources, or one. */
type Sent = Resources | EncodedResource;

/**
 * Joins the frames of resources that go out together, and keeps the last ones: a push to many streams that are sent the
 * same resources joins them once. Collections are known by their identity, and so is a resource.
 */
export class SharedBodies {
  readonly #bodies = {
    sotw: keepRecentlyUsed<Resources, Body>(maxKeptBytes / 2, bytesOf),
    delta: keepRecentlyUsed<Resources, Body>(maxKeptBytes / 2, bytesOf),
  };
  readonly #wholes = {
    sotw: keepRecentlyUsed<Sent, readonly [Uint8Array]>(maxWholeBytes / 2, ([whole]) => whole.length),
    delta: keepRecentlyUsed<Sent, readonly [Uint8Array]>(maxWholeBytes / 2, ([whole]) => whole.length),
  };
  /** Sendings in pieces. What is sent to few is not held by it. */
  readonly #sendings = { sotw: new WeakMap<Sent, number>(), delta: new WeakMap<Sent, number>() };

  /** The frames of some resources, or of a whole set, in as few pieces as is good. */
  framesOf(resources: Resources, delta: boolean): readonly Uint8Array[] {
    if (countOf(resources) > 1) return this.#whole(resources, delta, () => this.#joined(resources, delta));
    for (const resource of resources.values()) return this.#whole(resource, delta, () => frameOf(resource, delta));
    return [];
  }

  #joined(resources: Resources, delta: boolean): readonly Uint8Array[] {
    const bodies = this.#bodies[delta ? 'delta' : 'sotw'];
    let body = bodies.get(resources);
    if (body === undefined) {
      body = joined(framesOf(resources, delta));
      bodies.set(resources, body);
    }
    return body.pieces;
  }

  /** Pieces are shared with other bodies: those that few are sent stay in them. */
  #whole(sent: Sent, delta: boolean, inPieces: () => readonly Uint8Array[]): readonly Uint8Array[] {
    const protocol = delta ? 'delta' : 'sotw';
    const wholes = this.#wholes[protocol];
    const known = wholes.get(sent);
    if (known !== undefined) return known;
    const pieces = inPieces();
    if (pieces.length === 1) return pieces;
    const sendings = this.#sendings[protocol];
    const times = (sendings.get(sent) ?? 0) + 1;
    if (times <= sendingsInPieces) {
      sendings.set(sent, times);
      return pieces;
    }
    // Dropped for others, it is worth a copy again when it was sent as often as before.
    sendings.delete(sent);
    const whole = [keptConcat(pieces)] as const;
    wholes.set(sent, whole);
    return whole;
  }
}

interface Body {
  readonly pieces: readonly Uint8Array[];
  /** Bytes that are in no frame. */
  readonly copied: number;
}

/** Pieces that are written as they are: several bodies may share them, and a copy costs more than a write. */
const minPieceBytes = 4 * 1024;

/** Small ones are joined with those beside them. */
function joined(frames: readonly Uint8Array[]): Body {
  const pieces: Uint8Array[] = [];
  let copied = 0;
  let small: Uint8Array[] = [];
  const join = (): void => {
    if (small.length === 0) return;
    const piece = keptConcat(small);
    copied += piece.length;
    pieces.push(piece);
    small = [];
  };
  for (const frame of frames) {
    if (frame.length < minPieceBytes) {
      small.push(frame);
      continue;
    }
    join();
    pieces.push(frame);
  }
  join();
  return { pieces, copied };
}

/** What an entry takes beside its bytes, and each resource that it was joined from: there may be many small ones. */
const entryBytes = 1_000;
const resourceBytes = 1_000;

function bytesOf({ copied }: Body, resources: Resources): number {
  return copied + entryBytes + countOf(resources) * resourceBytes;
}

export function countOf(resources: Resources): number {
  return 'size' in resources ? resources.size : resources.length;
}

function framesOf(resources: Resources, delta: boolean): Uint8Array[] {
  const frames: Uint8Array[] = [];
  for (const resource of resources.values()) frames.push(...frameOf(resource, delta));
  return frames;
}

/** A resource as a response has it. */
export function frameOf({ deltaFrame, sotwFrame, rest }: EncodedResource, delta: boolean): readonly Uint8Array[] {
  return [delta ? deltaFrame : sotwFrame, ...rest];
}
