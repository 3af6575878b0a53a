/**
 * Parses discovery requests without a decoder, because a client may send its node with each request (megabytes of metadata a second in a large mesh),
 * but only the first node is used.
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
import { decodePrefix, maxTextBytes, readFields, utf8 } from './request-fields.ts';
import { hasBytesAt, type RequestNameLists, TooManyNames, type WireNames } from './request-names.ts';

export interface ReadRequest {
  readonly request: AdsRequest;
  readonly node: Uint8Array | undefined;
  /** If true, the request was not read completely. */
  readonly exceedsNames: boolean;
}

/** Field numbers of the node. Names and subscribed names are field 3 in both protocols. */
const nodeOf = { sotw: 2, delta: 1 } as const;

/** Name lists that a client repeats in each ACK are compared instead of parsed. */
export class RequestReader {
  readonly #lists: RequestNameLists;
  readonly #maxNames: number;
  readonly #lastLists = new Map<string, WireNames>();

  constructor(lists: RequestNameLists, maxNames: number) {
    this.#lists = lists;
    this.#maxNames = maxNames;
  }

  /** @throws Error if the bytes are not a DiscoveryRequest */
  readSotw(bytes: Uint8Array): ReadRequest {
    const request = {
      protocol: 'sotw',
      typeUrl: '',
      nonce: '',
      names: noNames,
      rejection: null,
    } as Mutable<SotwRequest>;
    let node: Uint8Array | undefined;
    let version: Uint8Array | undefined;
    const names = this.#createGatheredNames();
    // Repeated names may be omitted from the bytes.
    names.run = omittedFrom(bytes);
    const exceedsNames = !tryReadFields(bytes, (field, reader, start) => {
      if (field === nodeOf.sotw) node = reader.bytes();
      else if (field === 1) version = reader.bytes();
      else if (field === 3) names.appendRun(reader, start, () => this.#names(bytes, start));
      else if (field === 4) request.typeUrl = decodePrefix(reader.bytes(), maxTextBytes.typeUrl);
      else if (field === 5) request.nonce = decodePrefix(reader.bytes(), maxTextBytes.nonce);
      else if (field === 6) request.rejection = readStatusMessage(reader.bytes());
      else return false;
      return true;
    });
    if (exceedsNames) return { request, node, exceedsNames };
    request.names = names.toNames();
    if (version !== undefined && version.length > 0) {
      if (request.nonce === '') request.returning = true;
      else request.version = decodePrefix(version, maxTextBytes.version);
    }
    // Only consecutive names can be recognized by their bytes.
    if (names.isSingleRun && isWatchable(request.typeUrl)) this.#lastLists.set(request.typeUrl, names.run!);
    return { request, node, exceedsNames };
  }

  get lastLists(): Iterable<WireNames> {
    return this.#lastLists.values();
  }

  /** @throws Error if the bytes are not a DeltaDiscoveryRequest */
  readDelta(bytes: Uint8Array): ReadRequest {
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
    const clientVersions = new Map<string, string>();
    const namesByField = { subscribe: this.#createGatheredNames(), unsubscribe: this.#createGatheredNames() };
    let node: Uint8Array | undefined;
    const exceedsNames = !tryReadFields(bytes, (field, reader, start) => {
      if (field === nodeOf.delta) node = reader.bytes();
      else if (field === 2) request.typeUrl = decodePrefix(reader.bytes(), maxTextBytes.typeUrl);
      else if (field === 3 || field === 4)
        namesByField[field === 3 ? 'subscribe' : 'unsubscribe'].appendRun(reader, start, () =>
          this.#lists.read(bytes, start, this.#maxNames),
        );
      else if (field === 5) {
        const { name, version } = this.#lists.knownResourceLists.entry(reader.bytes());
        clientVersions.set(name, version);
        if (clientVersions.size > this.#maxNames) throw new TooManyNames();
      } else if (field === 6) request.nonce = decodePrefix(reader.bytes(), maxTextBytes.nonce);
      else if (field === 7) request.rejection = readStatusMessage(reader.bytes());
      else return false;
      return true;
    });
    if (exceedsNames) return { request, node, exceedsNames };
    request.subscribe = namesByField.subscribe.toNames();
    request.unsubscribe = namesByField.unsubscribe.toNames();
    if (clientVersions.size > 0) {
      const { names, versions } = this.#lists.knownResourceLists.list(clientVersions);
      Object.assign(request, { known: names, knownVersions: versions });
    }
    return { request, node, exceedsNames };
  }

  /** The type may come after the names. */
  #names(bytes: Uint8Array, start: number): WireNames {
    for (const list of this.#lastLists.values()) if (hasBytesAt(bytes, start, list.bytes)) return list;
    return this.#lists.read(bytes, start, this.#maxNames);
  }

  #createGatheredNames(): GatheredNames {
    return new GatheredNames(this.#lists, this.#maxNames);
  }
}

class GatheredNames {
  readonly #lists: RequestNameLists;
  readonly #maxNames: number;
  run: WireNames | undefined;
  /** Names after the first run. A name list for each run would take more memory if names alternate with other fields. */
  readonly #separateNames: string[] = [];

  constructor(lists: RequestNameLists, maxNames: number) {
    this.#lists = lists;
    this.#maxNames = maxNames;
  }

  get isSingleRun(): boolean {
    return this.run !== undefined && this.#separateNames.length === 0;
  }

  /**
   * @param start start of the field, whose tag has been read
   * @throws Error if there are too many names
   */
  appendRun(reader: BinaryReader, start: number, readRun: () => WireNames): void {
    if (this.run === undefined) {
      this.run = readRun();
      reader.pos = start + this.run.bytes.length;
      return;
    }
    this.#separateNames.push(reader.string());
    if (this.run.names.length + this.#separateNames.length > this.#maxNames) throw new TooManyNames();
  }

  toNames(): readonly string[] {
    if (this.run === undefined) return noNames;
    return this.isSingleRun ? this.run.names : this.#lists.intern([...this.run.names, ...this.#separateNames]);
  }
}

type Mutable<Of> = { -readonly [Key in keyof Of]: Of[Key] };

/** @throws Error if the bytes are not a Node */
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

/** Maximum number of fields before the node of a message, and before the ID of a node. Clients write both first. */
const maxSearchedFields = 16;

/** The content of a first request is not verified. */
export interface FirstRequest {
  /** `undefined` if the ID is missing, too far back in the message, or too long. */
  readonly nodeId: string | undefined;
  /** Whether the client already has configuration. */
  readonly isReturning: boolean;
}

export function readFirstRequest(request: Uint8Array, delta: boolean): FirstRequest {
  return { nodeId: nodeIdOf(request, delta), isReturning: hasFirstField(request, delta ? 5 : 1) };
}

function nodeIdOf(request: Uint8Array, delta: boolean): string | undefined {
  try {
    const node = firstField(request, delta ? nodeOf.delta : nodeOf.sotw);
    const id = node && firstField(node, 1);
    return id === undefined || id.length === 0 || id.length > maxNodeIdLength ? undefined : utf8.decode(id);
  } catch {
    return undefined;
  }
}

function hasFirstField(request: Uint8Array, field: number): boolean {
  try {
    return (firstField(request, field)?.length ?? 0) > 0;
  } catch {
    return false;
  }
}

function firstField(bytes: Uint8Array, fieldNumber: number): Uint8Array | undefined {
  const reader = new BinaryReader(bytes);
  for (let i = 0; i < maxSearchedFields && reader.pos < reader.len; i++) {
    const [field, wireType] = reader.tag();
    if (field === fieldNumber && wireType === 2) return reader.bytes();
    reader.skip(wireType, field);
  }
  return undefined;
}

/** @returns false if there are too many names */
function tryReadFields(...[bytes, onField]: Parameters<typeof readFields>): boolean {
  try {
    readFields(bytes, onField);
    return true;
  } catch (error) {
    if (error instanceof TooManyNames) return false;
    throw error;
  }
}

function readString(bytes: Uint8Array, fieldNumber: number, maxBytes: number): string {
  let text = '';
  readFields(bytes, (field, reader) => {
    if (field !== fieldNumber) return false;
    text = decodePrefix(reader.bytes(), maxBytes);
    return true;
  });
  return text;
}

function readStatusMessage(bytes: Uint8Array): string {
  return readString(bytes, 2, maxTextBytes.rejection);
}
