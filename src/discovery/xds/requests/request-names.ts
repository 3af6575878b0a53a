/** Interns name lists of requests. Equal bytes are parsed once, and equal names in any order share one list. */
import { hash } from 'node:crypto';
import { BinaryReader } from '@bufbuild/protobuf/wire';
import { noNames } from '../../../../machines/discovery/xds/name-lists.ts';
import { WeakValues } from '../../../model/collections/weak-values.ts';
import { concatChunks } from '../responses/wire.ts';
import { KnownResourceLists } from './known-resources.ts';
import { keepRecentlyUsed } from './recently-used.ts';

/** A list and the repeated field from which it was parsed. */
export interface WireNames {
  readonly bytes: Uint8Array;
  readonly names: readonly string[];
}

/** Enough for a hundred kinds of clients with a thousand names each. */
const maxKeptBytes = 8 * 1024 * 1024;
/** Approximate memory of a list, and of each reference in it. */
const listBytes = 200;
const nameBytes = 32;
/** A message is compared with these recent lists before its names are parsed. */
const maxLatestLists = 4;
const latestBytes = { least: 1024, most: 1024 * 1024 } as const;
/** Beyond this limit, all interned names are dropped, but lists keep their names. */
const maxKnownNames = 100_000;
const maxInternedNameLength = 512;

export class RequestNameLists {
  readonly #namesByBytes = keepRecentlyUsed<string, WireNames>(
    maxKeptBytes,
    ({ bytes, names }) => bytes.length + names.length * nameBytes + listBytes,
  );
  /** The newest list comes first. */
  #latestLists: readonly WireNames[] = [];
  /** References are weak, so that unused lists are garbage-collected. */
  readonly #sharedLists = new WeakValues<readonly string[]>();
  /** Interned, because thousands of lists contain the same names. */
  readonly #names = new Map<string, string>();
  readonly knownResourceLists = new KnownResourceLists((names) => this.intern(names));

  /** @throws Error if the fields do not end within the bytes or if there are more than `maxNames` */
  read(bytes: Uint8Array, start: number, maxNames: number): WireNames {
    for (const cachedNames of this.#latestLists) if (hasBytesAt(bytes, start, cachedNames.bytes)) return cachedNames;
    const names = this.#readNames(bytes.subarray(start, findEndOfRun(bytes, start, maxNames)));
    const { length } = names.bytes;
    if (length >= latestBytes.least && length <= latestBytes.most) {
      this.#latestLists = [names, ...this.#latestLists].slice(0, maxLatestLists);
    }
    return names;
  }

  #readNames(fields: Uint8Array): WireNames {
    const key = digest(fields);
    let cachedRun = this.#namesByBytes.get(key);
    if (cachedRun === undefined) {
      // Copies the bytes, because a view would keep the whole message in memory.
      cachedRun = { bytes: concatChunks([fields]), names: this.intern(this.#decode(fields)) };
      this.#namesByBytes.set(key, cachedRun);
    }
    return cachedRun;
  }

  /** Interns these names, sorted and without duplicates. */
  intern(names: readonly string[]): readonly string[] {
    if (names.length === 0) return noNames;
    const sortedNames = [...new Set(names)].sort();
    // Names may contain any character, and equal keys would give one client the list of another.
    const key = digest(Buffer.from(JSON.stringify(sortedNames)));
    const cachedNames = this.#sharedLists.get(key);
    if (cachedNames !== undefined) return cachedNames;
    this.#sharedLists.set(key, sortedNames);
    return sortedNames;
  }

  #decode(fields: Uint8Array): string[] {
    const reader = new BinaryReader(fields);
    const names: string[] = [];
    while (reader.pos < reader.len) {
      reader.tag();
      names.push(this.#internName(reader.string()));
    }
    return names;
  }

  #internName(name: string): string {
    if (name.length > maxInternedNameLength) return name;
    const cachedName = this.#names.get(name);
    if (cachedName !== undefined) return cachedName;
    if (this.#names.size >= maxKnownNames) this.#names.clear();
    this.#names.set(name, name);
    return name;
  }
}

function digest(bytes: Uint8Array): string {
  return hash('sha1', bytes, 'base64');
}

export class TooManyNames extends Error {
  override readonly name = 'TooManyNames';
}

/**
 * End of consecutive fields with the same one-byte tag.
 *
 * @throws Error if they do not end within the bytes or if there are more than `maxNames`
 */
function findEndOfRun(bytes: Uint8Array, start: number, maxNames: number): number {
  const tag = bytes[start];
  let offset = start;
  let fields = 0;
  while (offset < bytes.length && bytes[offset] === tag) {
    if (++fields > maxNames) throw new TooManyNames();
    offset++;
    let length = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[offset++];
      if (byte === undefined || shift > 28) throw new RangeError('a list of names is cut off');
      length += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) break;
    }
    offset += length;
  }
  if (offset > bytes.length) throw new RangeError('a list of names is cut off');
  return offset;
}

/** Whether exactly these consecutive fields start here. */
export function hasBytesAt(bytes: Uint8Array, start: number, run: Uint8Array): boolean {
  const endOffset = start + run.length;
  return (
    endOffset <= bytes.length &&
    bytes[endOffset] !== bytes[start] &&
    Buffer.compare(run, bytes.subarray(start, endOffset)) === 0
  );
}
