/**
 * Lists of names as they come on the wire. A thousand clients name the same thousand endpoints with every
 * acknowledgement: the same bytes are read once, and the same names, in whatever order, are one list.
 */
import { hash } from 'node:crypto';
import { BinaryReader } from '@bufbuild/protobuf/wire';
import { noNames } from '../../../../machines/discovery/xds/name-lists.ts';
import { WeakValues } from '../../../model/collections/weak-values.ts';
import { keptConcat } from '../responses/wire.ts';
import { keepRecentlyUsed } from './recently-used.ts';

/** A list, and the bytes that it was read from: fields of one number, one after the other. */
export interface WireNames {
  readonly bytes: Uint8Array;
  readonly names: readonly string[];
}

/** Memory of lists that are kept to be recognised: those of a hundred kinds of clients that name a thousand each. */
const maxKeptBytes = 8 * 1024 * 1024;
/** What a list takes beside its names, and what a name takes in it: its places, for the name itself lists share. */
const listBytes = 200;
const nameBytes = 32;
/** Lists that came last, of so many bytes: with these a message is compared before its names are looked through. */
const mostLatest = 4;
const latestBytes = { least: 1024, most: 1024 * 1024 } as const;
/** Names that are known; of more than these all are forgotten. Those that are in lists live on there. */
const maxKnownNames = 100_000;
/** Names of more characters than this are not kept to be recognised: those of a mesh are shorter. */
const longestKnownName = 512;

/** The lists of all streams of a server. */
export class NameLists {
  readonly #byBytes = keepRecentlyUsed<string, WireNames>(
    maxKeptBytes,
    ({ bytes, names }) => bytes.length + names.length * nameBytes + listBytes,
  );
  /** Newest first. */
  #latest: readonly WireNames[] = [];
  /** Lists of names that somebody holds. */
  readonly #byNames = new WeakValues<readonly string[]>();
  /** Equal names are one text: thousands of lists have the same ones. */
  readonly #names = new Map<string, string>();

  /**
   * Reads the fields of one number that begin here, one after the other. Throws when they do not end within the bytes, or are more
   * than `most`.
   */
  read(bytes: Uint8Array, start: number, most: number): WireNames {
    for (const latest of this.#latest) if (isRun(bytes, start, latest.bytes)) return latest;
    const names = this.#read(bytes.subarray(start, endOfRun(bytes, start, most)));
    const { length } = names.bytes;
    if (length >= latestBytes.least && length <= latestBytes.most) {
      this.#latest = [names, ...this.#latest].slice(0, mostLatest);
    }
    return names;
  }

  #read(fields: Uint8Array): WireNames {
    const key = digest(fields);
    let known = this.#byBytes.get(key);
    if (known === undefined) {
      // The bytes of a message hold all of it: a copy keeps no more than what is wanted.
      known = { bytes: keptConcat([fields]), names: this.shared(this.#decode(fields)) };
      this.#byBytes.set(key, known);
    }
    return known;
  }

  /** The one list of these names, in order and each once. */
  shared(names: readonly string[]): readonly string[] {
    if (names.length === 0) return noNames;
    const sorted = [...new Set(names)].sort();
    // No name holds a line's end; a list of such names is but one that is not shared rightly: it is told by its length.
    const key = digest(Buffer.from(`${sorted.length}\n${sorted.join('\n')}`));
    const known = this.#byNames.get(key);
    if (known !== undefined) return known;
    this.#byNames.set(key, sorted);
    return sorted;
  }

  #decode(fields: Uint8Array): string[] {
    const reader = new BinaryReader(fields);
    const names: string[] = [];
    while (reader.pos < reader.len) {
      reader.tag();
      names.push(this.#theOne(reader.string()));
    }
    return names;
  }

  #theOne(name: string): string {
    if (name.length > longestKnownName) return name;
    const known = this.#names.get(name);
    if (known !== undefined) return known;
    if (this.#names.size >= maxKnownNames) this.#names.clear();
    this.#names.set(name, name);
    return name;
  }
}

function digest(bytes: Uint8Array): string {
  return hash('sha1', bytes, 'base64');
}

/** A request has more names than are read. */
export class TooManyNames extends Error {
  override readonly name = 'TooManyNames';
}

/** Where a run of at most so many fields with the same one-byte tag ends. Throws when it does not end within the bytes. */
function endOfRun(bytes: Uint8Array, start: number, most: number): number {
  const tag = bytes[start];
  let at = start;
  let fields = 0;
  while (at < bytes.length && bytes[at] === tag) {
    if (++fields > most) throw new TooManyNames();
    at++;
    let length = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++];
      if (byte === undefined || shift > 28) throw new RangeError('a list of names is cut off');
      length += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) break;
    }
    at += length;
  }
  if (at > bytes.length) throw new RangeError('a list of names is cut off');
  return at;
}

/** Whether the run that starts here is this one, to its last field. */
export function isRun(bytes: Uint8Array, start: number, known: Uint8Array): boolean {
  const end = start + known.length;
  return end <= bytes.length && bytes[end] !== bytes[start] && Buffer.compare(known, bytes.subarray(start, end)) === 0;
}
