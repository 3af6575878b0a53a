/**
 * Reads discovery requests from the wire. By hand, because a client may send its whole node with each of them
 * (megabytes of metadata a second in a large mesh) and only the first one is of interest.
 */
import { fromBinary } from '@bufbuild/protobuf';
import { BinaryReader } from '@bufbuild/protobuf/wire';
import type { AdsRequest, DeltaRequest, SotwRequest } from '../../../../machines/discovery/xds/ads-protocol.ts';
import { isWatchable } from '../../../../machines/discovery/xds/ads-types.ts';
import { noNames } from '../../../../machines/discovery/xds/name-lists.ts';
import { NodeSchema } from '../../../gen/envoy/config/core/v3/base_pb.ts';
import { envoyBuildOf } from '../../../model/node/envoy-build.ts';
import { maxNodeIdLength } from '../ads-limits.ts';
import type { NodeIdentity } from '../resource-source.ts';
import { omittedFrom } from './known-runs.ts';
import { isRun, type NameLists, TooManyNames, type WireNames } from './request-names.ts';

export interface ReadRequest {
  readonly request: AdsRequest;
  /** The encoded Node, where the request has one. */
  readonly node: Uint8Array | undefined;
  /** The request names more than is read: what came after that is left out. */
  readonly exceedsNames: boolean;
}

/** A DiscoveryRequest has its names in field 3; so has a DeltaDiscoveryRequest those that are subscribed to. */
const nodeOf = { sotw: 2, delta: 1 } as const;

/**
 * Reads the requests of one stream. What a client says with every acknowledgement is compared with what it said before,
 * not read again.
 */
export class RequestReader {
  readonly #lists: NameLists;
  readonly #maxNames: number;
  /** What was named last, by type. */
  readonly #said = new Map<string, WireNames>();

  /** @param maxNames that a stream may be subscribed to: of more than these no request is read to its end */
  constructor(lists: NameLists, maxNames: number) {
    this.#lists = lists;
    this.#maxNames = maxNames;
  }

  /** Reads a DiscoveryRequest. Throws when the bytes are none. */
  sotw(bytes: Uint8Array): ReadRequest {
    const request = {
      protocol: 'sotw',
      typeUrl: '',
      nonce: '',
      names: noNames,
      rejection: null,
    } as Mutable<SotwRequest>;
    let node: Uint8Array | undefined;
    let version: Uint8Array | undefined;
    const names = this.#gathered();
    // Names that were said before may be left out of the bytes.
    names.run = omittedFrom(bytes);
    const exceedsNames = !readWithin(bytes, (field, reader, start) => {
      if (field === nodeOf.sotw) node = reader.bytes();
      else if (field === 1) version = reader.bytes();
      else if (field === 3) names.take(reader, start, () => this.#names(bytes, start));
      else if (field === 4) request.typeUrl = beginningOf(reader.bytes(), longest.typeUrl);
      else if (field === 5) request.nonce = beginningOf(reader.bytes(), longest.nonce);
      else if (field === 6) request.rejection = readStatusMessage(reader.bytes());
      else return false;
      return true;
    });
    if (exceedsNames) return { request, node, exceedsNames };
    request.names = names.all();
    if (version !== undefined && version.length > 0) {
      if (request.nonce === '') request.returning = true;
      else request.version = beginningOf(version, longest.version);
    }
    // Names in several places of a message are not recognised by the bytes of one of them.
    if (names.isOneRun && isWatchable(request.typeUrl)) this.#said.set(request.typeUrl, names.run!);
    return { request, node, exceedsNames };
  }

  /** The lists that the client may repeat. */
  get said(): Iterable<WireNames> {
    return this.#said.values();
  }

  /** Reads a DeltaDiscoveryRequest. Throws when the bytes are none. */
  delta(bytes: Uint8Array): ReadRequest {
    const request: Mutable<DeltaRequest> = {
      protocol: 'delta',
      typeUrl: '',
      nonce: '',
      subscribe: noNames,
      unsubscribe: noNames,
      known: noNames,
      knownVersions: noNames,
      rejection: null,
    };
    const known = new Map<string, string>();
    const named = { subscribe: this.#gathered(), unsubscribe: this.#gathered() };
    let node: Uint8Array | undefined;
    const exceedsNames = !readWithin(bytes, (field, reader, start) => {
      if (field === nodeOf.delta) node = reader.bytes();
      else if (field === 2) request.typeUrl = beginningOf(reader.bytes(), longest.typeUrl);
      else if (field === 3 || field === 4)
        named[field === 3 ? 'subscribe' : 'unsubscribe'].take(reader, start, () =>
          this.#lists.read(bytes, start, this.#maxNames),
        );
      else if (field === 5) {
        readKnown(reader.bytes(), known);
        if (known.size > this.#maxNames) throw new TooManyNames();
      } else if (field === 6) request.nonce = beginningOf(reader.bytes(), longest.nonce);
      else if (field === 7) request.rejection = readStatusMessage(reader.bytes());
      else return false;
      return true;
    });
    if (exceedsNames) return { request, node, exceedsNames };
    request.subscribe = named.subscribe.all();
    request.unsubscribe = named.unsubscribe.all();
    if (known.size > 0) {
      request.known = this.#lists.shared([...known.keys()]);
      request.knownVersions = request.known.map((name) => known.get(name)!);
    }
    return { request, node, exceedsNames };
  }

  /** The names that start here. The type that they are of may come after them. */
  #names(bytes: Uint8Array, start: number): WireNames {
    for (const said of this.#said.values()) if (isRun(bytes, start, said.bytes)) return said;
    return this.#lists.read(bytes, start, this.#maxNames);
  }

  #gathered(): GatheredNames {
    return new GatheredNames(this.#lists, this.#maxNames);
  }
}

/** The names of one field, wherever in a message they stand: in one run, as clients write them, or here and there. */
class GatheredNames {
  readonly #lists: NameLists;
  readonly #most: number;
  /** The first ones, up to what is no name. */
  run: WireNames | undefined;
  /** Names that came one by one: a client that alternates them with other fields would have a list made, and kept, for each. */
  readonly #others: string[] = [];

  constructor(lists: NameLists, most: number) {
    this.#lists = lists;
    this.#most = most;
  }

  get isOneRun(): boolean {
    return this.run !== undefined && this.#others.length === 0;
  }

  /** Reads the next ones, from a field that begins at `start` and whose tag has been read. Throws when they are too many. */
  take(reader: BinaryReader, start: number, read: () => WireNames): void {
    if (this.run === undefined) {
      this.run = read();
      reader.pos = start + this.run.bytes.length;
      return;
    }
    this.#others.push(reader.string());
    if (this.run.names.length + this.#others.length > this.#most) throw new TooManyNames();
  }

  all(): readonly string[] {
    if (this.run === undefined) return noNames;
    return this.isOneRun ? this.run.names : this.#lists.shared([...this.run.names, ...this.#others]);
  }
}

/**
 * Bytes of texts that count: of what a client says only to be told apart or read by people, the rest is not kept. No type that
 * is served and no nonce that was given is as long.
 */
const longest = { typeUrl: 256, nonce: 256, version: 256, rejection: 2_048 } as const;

const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });

/** The text, or as much of it as counts: a copy, for a part of a text would keep all of it. */
function beginningOf(bytes: Uint8Array, longestBytes: number): string {
  return utf8.decode(bytes.length <= longestBytes ? bytes : bytes.subarray(0, longestBytes));
}

type Mutable<Of> = { -readonly [Key in keyof Of]: Of[Key] };

/** Reads an encoded Node. Throws when the bytes are none. */
export function readNode(bytes: Uint8Array): NodeIdentity {
  const node = fromBinary(NodeSchema, bytes);
  const { id, cluster, metadata, locality } = node;
  const envoy = envoyBuildOf(node);
  return {
    id,
    cluster,
    metadata: metadata ?? {},
    ...(locality !== undefined && {
      locality: { region: locality.region, zone: locality.zone, subZone: locality.subZone },
    }),
    ...(envoy && { envoy }),
  };
}

/** How far into a message its node is looked for, and into a node its id, in fields: both are written first. */
const farthestField = 16;

/** The id of a request's node; undefined when there is none to be found at once, or one that is too long. */
export function nodeIdIn(request: Uint8Array, delta: boolean): string | undefined {
  try {
    const node = firstField(request, delta ? nodeOf.delta : nodeOf.sotw);
    const id = node && firstField(node, 1);
    return id === undefined || id.length === 0 || id.length > maxNodeIdLength ? undefined : utf8.decode(id);
  } catch {
    return undefined;
  }
}

function firstField(bytes: Uint8Array, wanted: number): Uint8Array | undefined {
  const reader = new BinaryReader(bytes);
  for (let i = 0; i < farthestField && reader.pos < reader.len; i++) {
    const [field, wireType] = reader.tag();
    if (field === wanted && wireType === 2) return reader.bytes();
    reader.skip(wireType, field);
  }
  return undefined;
}

/** Calls `take` with each field and where it starts; it reads the field and answers true, or leaves it alone. */
function readFields(bytes: Uint8Array, take: (field: number, reader: BinaryReader, start: number) => boolean): void {
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const start = reader.pos;
    const [field, wireType] = reader.tag();
    // All fields that are read are length-delimited (wire type 2).
    if (wireType !== 2 || !take(field, reader, start)) reader.skip(wireType, field);
  }
}

/** @returns whether all fields were read: not where they name too much */
function readWithin(...[bytes, take]: Parameters<typeof readFields>): boolean {
  try {
    readFields(bytes, take);
    return true;
  } catch (error) {
    if (error instanceof TooManyNames) return false;
    throw error;
  }
}

/** An entry of `initial_resource_versions`. */
function readKnown(bytes: Uint8Array, known: Map<string, string>): void {
  let name = '';
  let version = '';
  readFields(bytes, (field, reader) => {
    if (field === 1) name = reader.string();
    else if (field === 2) version = beginningOf(reader.bytes(), longest.version);
    else return false;
    return true;
  });
  known.set(name, version);
}

function readString(bytes: Uint8Array, wanted: number, longestBytes: number): string {
  let text = '';
  readFields(bytes, (field, reader) => {
    if (field !== wanted) return false;
    text = beginningOf(reader.bytes(), longestBytes);
    return true;
  });
  return text;
}

/** `message` of a google.rpc.Status. */
function readStatusMessage(bytes: Uint8Array): string {
  return readString(bytes, 2, longest.rejection);
}
