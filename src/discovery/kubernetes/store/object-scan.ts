/**
 * Looks through the bytes of a large object before they are parsed. Parsing one megabyte of a map with 67,000 names takes 40 ms, because V8
 * keeps each different short text once: an object with too many of them is rejected unparsed. No bytes are kept here.
 */
import { limitError } from '../../../model/fields/limits.ts';
import type { KubernetesObject } from '../api-server.ts';

/** Objects of fewer bytes are parsed without a look. */
const minScannedBytes = 64 * 1024;
/** Different names of fields and short texts of one object. A list of 4,096 items with two short names each has 8,192. */
export const maxDistinctTexts = 32_768;
/** Lists and maps of one object. */
export const maxContainers = 262_144;

/** V8 keeps texts in JSON up to this length once. */
const maxSharedTextLength = 10;
/** Longer than any name that is looked for. */
const maxNoted = 32;

const [quote, backslash, open, close, openList, closeList, colon, comma] = Buffer.from('"\\{}[]:,');

/** In metadata: what tells one version of one object from all others. */
const identifying: ReadonlySet<string> = new Set([
  ...['name', 'namespace', 'uid', 'resourceVersion', 'generation', 'creationTimestamp', 'deletionTimestamp', 'labels'],
]);
/** Longer ones are left out: labels tell which revision an object is for. */
const maxIdentifyingBytes = 16 * 1024;

interface Range {
  readonly from: number;
  to: number;
}

const excess = Symbol('excess');

/** Why nothing but its metadata is known of the object; `undefined`: all of it is. */
export function excessOf(object: object): string | undefined {
  return (object as { readonly [excess]?: string })[excess];
}

/** The same object, with the reason why nothing else is known of it. */
export function withExcess<T extends object>(object: T, reason: string): T {
  return { ...object, [excess]: reason };
}

/**
 * Looks through what came of an object, once it is large.
 *
 * @param scan of what came before
 * @param all what came until now, the part included
 * @param level containers around the object
 */
export function scanned(
  scan: ObjectScan | undefined,
  part: Buffer,
  all: readonly Buffer[],
  bytes: number,
  level: number,
): ObjectScan | undefined {
  if (scan !== undefined) scan.push(part);
  else if (bytes >= minScannedBytes) {
    const begun = new ObjectScan(level);
    for (const each of all) begun.push(each);
    return begun;
  }
  return scan;
}

export class ObjectScan {
  /** Levels around the object: 1 in a line of a watch, which has it in a field. */
  readonly #level: number;
  /** For each open container, whether it is a map. */
  readonly #maps: boolean[] = [];
  readonly #distinct = new Set<number>();
  /** An attacker who knew them could choose names that are taken for one. */
  readonly #seeds = [randomOdd(), randomOdd()] as const;
  /** Where values of wanted fields lie, by path: `type`, `metadata.name`. */
  readonly #ranges = new Map<string, Range>();
  #containers = 0;
  #at = 0;
  #inText = false;
  #escaped = false;
  #isName = false;
  #textLength = 0;
  readonly #hashes: [number, number] = [0, 0];
  /** A name that may be wanted. */
  #noted = '';
  /** Wanted fields whose values are not over, the innermost last. */
  readonly #openRanges: { readonly range: Range; readonly depth: number }[] = [];
  #inMetadata = false;

  /** @param level containers around the object */
  constructor(level: number) {
    this.#level = level;
  }

  /** Why the object must not be parsed; `undefined`: it may. */
  get excess(): string | undefined {
    const names = this.#distinct.size;
    if (names > maxDistinctTexts)
      return tooMany(`at least ${names}`, maxDistinctTexts, 'different field names and short strings');
    if (this.#containers > maxContainers) return tooMany(this.#containers, maxContainers, 'lists and maps');
    return undefined;
  }

  push(bytes: Buffer): void {
    for (let index = 0; index < bytes.length; index++, this.#at++) {
      const byte = bytes[index]!;
      if (this.#inText) this.#takeText(byte);
      else this.#take(byte);
    }
  }

  /**
   * What identifies an object that must not be parsed, with the reason why ({@link excessOf}).
   *
   * @param bytes all that were looked at
   * @throws SyntaxError: they are no JSON
   */
  objectIn(bytes: Buffer): Pick<KubernetesObject, 'kind' | 'metadata'> {
    const kind = this.fieldIn(bytes, 'kind');
    const object = { ...(typeof kind === 'string' && { kind }), metadata: this.#metadataIn(bytes) };
    return withExcess(object, this.excess ?? '');
  }

  #metadataIn(bytes: Buffer): KubernetesObject['metadata'] {
    const entries = [...this.#ranges].flatMap(([path, { from, to }]) => {
      if (!path.startsWith('metadata.') || to - from > maxIdentifyingBytes) return [];
      return [[path.slice('metadata.'.length), JSON.parse(bytes.toString('utf8', from, to)) as unknown]];
    });
    return Object.fromEntries(entries) as KubernetesObject['metadata'];
  }

  /** A field of the outermost map, or of the object: `type`, `kind`. */
  fieldIn(bytes: Buffer, name: 'type' | 'kind'): unknown {
    const range = this.#ranges.get(name);
    return range && JSON.parse(bytes.toString('utf8', range.from, range.to));
  }

  #takeText(byte: number): void {
    if (this.#escaped) this.#escaped = false;
    else if (byte === backslash) this.#escaped = true;
    else if (byte === quote) {
      this.#inText = false;
      this.#endText();
      return;
    }
    this.#textLength++;
    const [first, second] = this.#hashes;
    this.#hashes[0] = (Math.imul(first ^ byte, this.#seeds[0]) + (first >>> 15)) | 0;
    this.#hashes[1] = (Math.imul(second ^ byte, this.#seeds[1]) + (second >>> 13)) | 0;
    if (this.#isName && this.#textLength <= maxNoted && this.#maps.length <= this.#level + 2)
      this.#noted += String.fromCharCode(byte);
  }

  #endText(): void {
    const isShared = this.#isName || this.#textLength <= maxSharedTextLength;
    if (isShared && this.#distinct.size <= maxDistinctTexts) this.#distinct.add(mixed(this.#hashes));
  }

  #take(byte: number): void {
    switch (byte) {
      case quote:
        this.#inText = true;
        this.#textLength = 0;
        this.#hashes[0] = this.#seeds[0];
        this.#hashes[1] = this.#seeds[1];
        if (this.#isName) this.#noted = '';
        break;
      case open:
      case openList:
        this.#maps.push(byte === open);
        this.#containers++;
        this.#isName = byte === open;
        break;
      case close:
      case closeList:
        this.#endValue();
        this.#maps.pop();
        this.#isName = false;
        break;
      case colon:
        this.#isName = false;
        this.#beginValue();
        break;
      case comma:
        this.#endValue();
        this.#isName = this.#maps.at(-1) === true;
        break;
    }
  }

  #beginValue(): void {
    const depth = this.#maps.length;
    const inObject = depth === this.#level + 1;
    const name = this.#noted;
    if (depth === 1 && name === 'type') this.#begin('type', depth);
    else if (inObject && name === 'kind') this.#begin('kind', depth);
    else if (inObject) this.#inMetadata = name === 'metadata';
    else if (depth === this.#level + 2 && this.#inMetadata && identifying.has(name))
      this.#begin(`metadata.${name}`, depth);
  }

  #begin(path: string, depth: number): void {
    const range = { from: this.#at + 1, to: 0 };
    this.#ranges.set(path, range);
    this.#openRanges.push({ range, depth });
  }

  #endValue(): void {
    const last = this.#openRanges.at(-1);
    if (last === undefined || last.depth !== this.#maps.length) return;
    last.range.to = this.#at;
    this.#openRanges.pop();
  }
}

const randomOdd = (): number => Math.floor(Math.random() * 2 ** 31) | 1;

/**
 * One number of both: by one alone, a multiplier in 100 takes more than ten of 32,778 names for others. Mixed, they are lost as by chance alone,
 * 0.13 on average.
 */
function mixed([first, second]: readonly [number, number]): number {
  let hash = Math.imul(first ^ (first >>> 16), 0x85ebca6b) ^ second;
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}

function tooMany(count: number | string, max: number, what: string): string {
  return limitError('', count, max, what).message;
}
