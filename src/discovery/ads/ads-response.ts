/** Puts discovery responses together from resources that are encoded already. */
import type { EncodedResource } from './resource-source.ts';
import { encodedLength, WireWriter } from './wire.ts';

export interface ResponseHead {
  readonly typeUrl: string;
  readonly version: string;
  readonly nonce: string;
  /** Delta: names that the client should drop. */
  readonly removed: readonly string[];
}

/** The parts of a response: a few bytes of its own, and bytes that many responses share. */
export interface ResponseParts {
  /** Version, type, nonce and removed names. */
  readonly own: Uint8Array;
  /** The resources' frames, in order. */
  readonly shared: readonly Uint8Array[];
}

type Resources = ReadonlyMap<string, EncodedResource> | readonly EncodedResource[];

/** Field numbers of DiscoveryResponse and of DeltaDiscoveryResponse agree in all but the removed names. */
const field = { version: 1, typeUrl: 4, nonce: 5, removed: 6 } as const;

/** Fields may come in any order, so what is a response's own is in one piece. */
export function encodeHead(head: ResponseHead): Buffer {
  const length =
    textLength(field.version, head.version) +
    textLength(field.typeUrl, head.typeUrl) +
    textLength(field.nonce, head.nonce) +
    head.removed.reduce((sum, name) => sum + encodedLength(field.removed, name), 0);
  const writer = new WireWriter(length);
  if (head.version !== '') writer.text(field.version, head.version);
  if (head.typeUrl !== '') writer.text(field.typeUrl, head.typeUrl);
  if (head.nonce !== '') writer.text(field.nonce, head.nonce);
  for (const name of head.removed) writer.text(field.removed, name);
  return writer.finish();
}

function textLength(number: number, text: string): number {
  return text === '' ? 0 : encodedLength(number, text);
}

/**
 * Joins the frames of whole sets, and keeps the last of each type: a push to many streams that should have the same set
 * joins it once.
 */
export class SharedBodies {
  readonly #last = new Map<string, { resources: Resources; body: Buffer }>();

  /** The frames of some resources, or of a whole set. */
  framesOf(typeUrl: string, resources: Resources, delta: boolean): readonly Uint8Array[] {
    const frames = (): Uint8Array[] =>
      [...resources.values()].map((resource) => (delta ? resource.deltaFrame : resource.sotwFrame));
    if (Array.isArray(resources)) return frames();
    const key = `${delta ? 'delta' : 'sotw'} ${typeUrl}`;
    const last = this.#last.get(key);
    if (last?.resources === resources) return [last.body];
    const body = Buffer.concat(frames());
    this.#last.set(key, { resources, body });
    return [body];
  }
}
