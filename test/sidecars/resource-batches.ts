/** What a client needs to know of resources: looked up once for each distinct sequence of bytes, whoever receives it. */
import { hash } from 'node:crypto';
import { Fields, textOf } from './protobuf-fields.ts';
import { isWildcard, type Kind } from './xds-types.ts';

export interface ResourceFacts {
  readonly name: string;
  /** Delta only. */
  readonly version: string;
  /** Of the resource's own bytes. */
  readonly digest: string;
  readonly bytes: number;
  /** Endpoints that a cluster takes from EDS, routes that a listener takes from RDS. */
  readonly refersTo: readonly string[];
}

/** The resources of one response. */
export type ResourceBatch = ReadonlyMap<string, ResourceFacts>;

/** Distinct batches that are remembered for each kind. */
const batchesKept = 48;
/** Distinct resources that are remembered, of all kinds. */
const factsKept = 100_000;

export class ResourceBatches {
  readonly #delta: boolean;
  readonly #recent = new Map<Kind, { readonly bytes: Buffer; readonly batch: ResourceBatch }[]>();
  readonly #facts = new Map<string, ResourceFacts>();

  constructor(delta: boolean) {
    this.#delta = delta;
  }

  /** The same object for the same resources, in any order, if they were seen a short while ago. */
  of(kind: Kind, resources: Buffer): ResourceBatch {
    const recent = this.#recent.get(kind) ?? [];
    this.#recent.set(kind, recent);
    const index = recent.findIndex(({ bytes }) => bytes.length === resources.length && bytes.equals(resources));
    if (index >= 0) return first(recent, index).batch;
    const batch = this.#read(kind, resources);
    const sameIndex = recent.findIndex(
      (known) => known.bytes.length === resources.length && isSame(known.batch, batch),
    );
    if (sameIndex >= 0) return first(recent, sameIndex).batch;
    recent.unshift({ bytes: Buffer.from(resources), batch });
    recent.length = Math.min(recent.length, batchesKept);
    return batch;
  }

  #read(kind: Kind, resources: Buffer): ResourceBatch {
    const batch = new Map<string, ResourceFacts>();
    const fields = new Fields(resources);
    if (this.#facts.size > factsKept) this.#facts.clear();
    while (fields.next()) {
      // The bytes as a text are a key that costs one look at them. A resource has its type in them.
      const key = resources.toString('latin1', fields.start, fields.end);
      const facts = this.#facts.get(key) ?? readResource(kind, fields.inner(), this.#delta);
      this.#facts.set(key, facts);
      batch.set(facts.name, facts);
    }
    return batch;
  }
}

/** Takes an entry to the front. */
function first<Entry>(recent: Entry[], index: number): Entry {
  const [entry] = recent.splice(index, 1);
  recent.unshift(entry!);
  return entry!;
}

function isSame(a: ResourceBatch, b: ResourceBatch): boolean {
  if (a.size !== b.size) return false;
  for (const [name, facts] of a) if (b.get(name) !== facts) return false;
  return true;
}

/** @param fields of a resource as a response has it: an Any, in delta with a name and a version around it */
function readResource(kind: Kind, fields: Fields, delta: boolean): ResourceFacts {
  return delta ? readWrapped(kind, fields) : readAny(kind, fields, '');
}

/** An envoy.service.discovery.v3.Resource. */
function readWrapped(kind: Kind, fields: Fields): ResourceFacts {
  let version = '';
  let name = '';
  let any: Fields | undefined;
  while (fields.next()) {
    if (fields.field === 1) version = fields.text();
    else if (fields.field === 2) any = fields.inner();
    else if (fields.field === 3) name = fields.text();
  }
  if (any === undefined) return { name, version, digest: '', bytes: 0, refersTo: [] };
  const facts = readAny(kind, any, version);
  return name === '' ? facts : { ...facts, name };
}

function readAny(kind: Kind, fields: Fields, version: string): ResourceFacts {
  while (fields.next()) {
    if (fields.field !== 2) continue;
    const value = fields.bytes.subarray(fields.start, fields.end);
    return {
      // Field 1 of all four.
      name: textOf(new Fields(value), 1),
      version,
      digest: hash('md5', value, 'hex'),
      bytes: value.length,
      refersTo: isWildcard(kind) ? (kind === 'CDS' ? endpointsOf(value) : routesOf(value)) : [],
    };
  }
  return { name: '', version, digest: '', bytes: 0, refersTo: [] };
}

const discoveryTypeEds = 3;

/** Field numbers of Cluster: name 1, type 2, eds_cluster_config 3 (service_name 2). */
function endpointsOf(cluster: Buffer): string[] {
  const fields = new Fields(cluster);
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

/** Listener: filter_chains 3, default_filter_chain 25; there filters 3, there typed_config 4. */
function routesOf(listener: Buffer): string[] {
  const names = new Set<string>();
  const fields = new Fields(listener);
  while (fields.next()) {
    if (fields.field !== 3 && fields.field !== 25) continue;
    const chain = fields.inner();
    while (chain.next()) if (chain.field === 3) noteRoute(chain.inner(), names);
  }
  return [...names];
}

function noteRoute(filter: Fields, names: Set<string>): void {
  while (filter.next()) {
    if (filter.field !== 4) continue;
    const config = filter.inner();
    let typeUrl = '';
    while (config.next()) {
      if (config.field === 1) typeUrl = config.text();
      else if (config.field === 2 && typeUrl.endsWith('.HttpConnectionManager')) {
        // HttpConnectionManager: rds 3, there route_config_name 2.
        const manager = config.inner();
        while (manager.next()) if (manager.field === 3) names.add(textOf(manager.inner(), 2));
      }
    }
  }
  names.delete('');
}
