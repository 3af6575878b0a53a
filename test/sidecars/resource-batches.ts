/** Facts about resources, parsed once for each distinct sequence of bytes, whichever client receives it. */
import { hash } from 'node:crypto';
import { ProtobufFields, textOf } from './protobuf-fields.ts';
import { isWildcard, type Kind } from './xds-types.ts';

/** A cluster without the time limits for resources that Envoy fetches before it uses the cluster. */
export interface ClusterContent {
  readonly digest: string;
  /** Whether the cluster has such a limit. */
  readonly isLimited: boolean;
}

export interface ResourceFacts {
  readonly name: string;
  /** Delta protocol only. */
  readonly version: string;
  /** Digest of the bytes of the resource. */
  readonly digest: string;
  readonly bytes: number;
  /** EDS names of a cluster, or RDS names of a listener. */
  readonly refersTo: readonly string[];
  /** Content of a cluster, if clusters are parsed. */
  readonly content?: ClusterContent;
}

/** The resources of one response. */
export type ResourceBatch = ReadonlyMap<string, ResourceFacts>;

/** Maximum number and bytes of cached batches. Proxies in some hundred namespaces receive different routes each; an evicted batch is parsed again. */
const limits = { batches: 2_048, bytes: 256 * 1024 * 1024 };
/** Key length: batches of the same length usually differ within these bytes, which contain a version in the delta protocol. */
const beginningBytes = 128;
/** Maximum number of cached resources of all kinds. Larger resources are few in a batch, and are parsed with it. */
const maxCachedFacts = 100_000;
const maxCachedBytes = 64 * 1024;

type ReadContent = (cluster: Buffer) => ClusterContent;

interface KnownBatch {
  readonly beginning: string;
  readonly kind: Kind;
  readonly bytes: Buffer;
  readonly batch: ResourceBatch;
}

export class ResourceBatches {
  readonly #delta: boolean;
  readonly #limits: typeof limits;
  readonly #contentOf: ReadContent | undefined;
  /** Least recently used first. */
  readonly #knownBatches = new Set<KnownBatch>();
  readonly #batchesByPrefix = new Map<string, Set<KnownBatch>>();
  #bytes = 0;
  readonly #facts = new Map<string, ResourceFacts>();

  /** @param contentOf parses clusters; by default they are not parsed */
  constructor(delta: boolean, maximums: Partial<typeof limits> = {}, contentOf?: ReadContent) {
    this.#delta = delta;
    this.#limits = { ...limits, ...maximums };
    this.#contentOf = contentOf;
  }

  /**
   * Returns the same object for the same resources in any order, if they were received recently.
   *
   * @param resources may be kept
   */
  of(kind: Kind, resources: Buffer): ResourceBatch {
    const beginning = `${kind} ${resources.length} ${resources.toString('latin1', 0, beginningBytes)}`;
    for (const knownBatch of this.#batchesByPrefix.get(beginning) ?? []) {
      if (!knownBatch.bytes.equals(resources)) continue;
      this.#knownBatches.delete(knownBatch);
      this.#knownBatches.add(knownBatch);
      return knownBatch.batch;
    }
    const batch = this.#read(kind, resources);
    for (const knownBatch of this.#knownBatches) {
      if (
        knownBatch.kind === kind &&
        knownBatch.bytes.length === resources.length &&
        isSameBatch(knownBatch.batch, batch)
      ) {
        return knownBatch.batch;
      }
    }
    this.#remember({ beginning, kind, bytes: resources, batch });
    return batch;
  }

  #remember(entry: KnownBatch): void {
    this.#knownBatches.add(entry);
    this.#bytes += entry.bytes.length;
    const alike = this.#batchesByPrefix.get(entry.beginning);
    if (alike === undefined) this.#batchesByPrefix.set(entry.beginning, new Set([entry]));
    else alike.add(entry);
    for (const oldest of this.#knownBatches) {
      if (this.#knownBatches.size <= this.#limits.batches && this.#bytes <= this.#limits.bytes) return;
      this.#forget(oldest);
    }
  }

  #forget(knownBatch: KnownBatch): void {
    this.#knownBatches.delete(knownBatch);
    this.#bytes -= knownBatch.bytes.length;
    const alike = this.#batchesByPrefix.get(knownBatch.beginning)!;
    alike.delete(knownBatch);
    if (alike.size === 0) this.#batchesByPrefix.delete(knownBatch.beginning);
  }

  #read(kind: Kind, resources: Buffer): ResourceBatch {
    const batch = new Map<string, ResourceFacts>();
    const fields = new ProtobufFields(resources);
    if (this.#facts.size > maxCachedFacts) this.#facts.clear();
    while (fields.next()) {
      const facts =
        fields.end - fields.start > maxCachedBytes
          ? readResource(kind, fields.inner(), this.#delta, this.#contentOf)
          : this.#factsOf(kind, resources, fields);
      batch.set(facts.name, facts);
    }
    return batch;
  }

  #factsOf(kind: Kind, resources: Buffer, fields: ProtobufFields): ResourceFacts {
    // The bytes as a string are the cache key. They contain the type of the resource.
    const key = resources.toString('latin1', fields.start, fields.end);
    const facts = this.#facts.get(key) ?? readResource(kind, fields.inner(), this.#delta, this.#contentOf);
    this.#facts.set(key, facts);
    return facts;
  }
}

function isSameBatch(a: ResourceBatch, b: ResourceBatch): boolean {
  if (a.size !== b.size) return false;
  for (const [name, facts] of a) if (b.get(name) !== facts) return false;
  return true;
}

/** @param fields of a resource in a response: an Any, in the delta protocol within a Resource with name and version */
function readResource(kind: Kind, fields: ProtobufFields, delta: boolean, contentOf?: ReadContent): ResourceFacts {
  return delta ? readWrapped(kind, fields, contentOf) : readAny(kind, fields, '', contentOf);
}

/** An envoy.service.discovery.v3.Resource. */
function readWrapped(kind: Kind, fields: ProtobufFields, contentOf?: ReadContent): ResourceFacts {
  let version = '';
  let name = '';
  let anyFields: ProtobufFields | undefined;
  while (fields.next()) {
    if (fields.field === 1) version = fields.text();
    else if (fields.field === 2) anyFields = fields.inner();
    else if (fields.field === 3) name = fields.text();
  }
  if (anyFields === undefined) return { name, version, digest: '', bytes: 0, refersTo: [] };
  const facts = readAny(kind, anyFields, version, contentOf);
  return name === '' ? facts : { ...facts, name };
}

function readAny(kind: Kind, fields: ProtobufFields, version: string, contentOf?: ReadContent): ResourceFacts {
  while (fields.next()) {
    if (fields.field !== 2) continue;
    const value = fields.bytes.subarray(fields.start, fields.end);
    return {
      // Field 1 in all four messages.
      name: textOf(new ProtobufFields(value), 1),
      version,
      digest: hash('sha1', value, 'hex'),
      bytes: value.length,
      refersTo: isWildcard(kind) ? (kind === 'CDS' ? endpointsOf(value) : routesOf(value)) : [],
      ...(kind === 'CDS' && contentOf !== undefined && { content: contentOf(value) }),
    };
  }
  return { name: '', version, digest: '', bytes: 0, refersTo: [] };
}

const discoveryTypeEds = 3;

/** Field numbers of Cluster: name 1, type 2, eds_cluster_config 3 (service_name 2). */
function endpointsOf(cluster: Buffer): string[] {
  const fields = new ProtobufFields(cluster);
  let name = '';
  let serviceName = '';
  let isEds = false;
  while (fields.next()) {
    if (fields.field === 1) name = fields.text();
    else if (fields.field === 2) isEds = fields.number === discoveryTypeEds;
    else if (fields.field === 3) serviceName = textOf(fields.inner(), 2);
  }
  return isEds ? [serviceName || name] : [];
}

/** Field numbers: filter_chains 3 and default_filter_chain 25 of Listener, filters 3 of FilterChain, typed_config 4 of Filter. */
function routesOf(listener: Buffer): string[] {
  const names = new Set<string>();
  const fields = new ProtobufFields(listener);
  while (fields.next()) {
    if (fields.field !== 3 && fields.field !== 25) continue;
    const chain = fields.inner();
    while (chain.next()) if (chain.field === 3) noteRoute(chain.inner(), names);
  }
  return [...names];
}

function noteRoute(filter: ProtobufFields, names: Set<string>): void {
  while (filter.next()) {
    if (filter.field !== 4) continue;
    const config = filter.inner();
    let typeUrl = '';
    while (config.next()) {
      if (config.field === 1) typeUrl = config.text();
      else if (config.field === 2 && typeUrl.endsWith('.HttpConnectionManager')) {
        // Field numbers: rds 3 of HttpConnectionManager, route_config_name 2 of Rds.
        const manager = config.inner();
        while (manager.next()) if (manager.field === 3) names.add(textOf(manager.inner(), 2));
      }
    }
  }
  names.delete('');
}
