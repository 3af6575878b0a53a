/**
 * Objects of a source over xDS: what was received, the version of each that applies, and the edits that the next reading of the source
 * takes. A rejected object keeps its last valid version; one that restricts access and never was valid fails closed.
 */
import { hash } from 'node:crypto';
import type { DescMessage } from '@bufbuild/protobuf';
import type { ConfigProblem } from '../../../../machines/discovery/protocol.ts';
import { type Config, configKeyText } from '../../../model/config/config.ts';
import { readConfigObject } from '../../../model/config/config-file.ts';
import type { KindName } from '../../../model/kinds/index.ts';
import { messageOf } from '../../../runtime/errors.ts';
import type { Steps } from '../../../runtime/turns.ts';
import type { ConfigEdits } from '../snapshots/config-snapshot.ts';
import { boundedProblems, problemOf, withoutEffect } from '../sources/object-problems.ts';
import { isOfRevision } from '../sources/object-revision.ts';
import { decodeResource, nameIn, type ReceivedObject } from './received-object.ts';

export interface SourceObjectsOptions {
  readonly address: string;
  readonly messages: ReadonlyMap<KindName, DescMessage>;
  readonly revision: string;
  readonly maxObjects: number;
  readonly maxBytes: number;
  /** The resources as they were received are kept, for the state on disk. */
  readonly keepsBytes: boolean;
}

/** One object. */
interface Held {
  readonly version: string;
  /** Of the resource as it was received last, valid or not. */
  readonly digest: string;
  readonly bytes: number;
  /** Of the version that applies. */
  readonly valid: Uint8Array | undefined;
  /** What applies: the object, its last valid version, or a stand-in that fails closed. */
  readonly inForce: readonly Config[];
  readonly problems: readonly ConfigProblem[];
}

/** A response that is decoded and does not apply yet. */
export interface StagedResponse {
  readonly kind: KindName;
  /** Number of resources that it has. */
  readonly sent: number;
  /** Names of these. */
  readonly present: ReadonlySet<string>;
  readonly changed: ReadonlyMap<string, Held>;
  /** Names of objects that apply and that it does not have. */
  readonly removed: readonly string[];
  /** Objects of the kind that are known. */
  readonly known: number;
  /** Objects of this response that are rejected, and those that were and that it has again. */
  readonly rejected: number;
  /** Errors of rejected objects, in their order. */
  readonly errors: readonly ConfigProblem[];
  /** The response as a whole exceeds a limit, so that nothing of it applies. */
  readonly refusal: string | undefined;
}

/** A resource of a response. */
export interface StagedResource {
  /** Name and version that a delta response gives it; empty: none. */
  readonly name: string;
  readonly version: string;
  /** An `istio.mcp.v1alpha1.Resource`. */
  readonly bytes: Uint8Array;
}

const none: ReadonlyMap<string, Held> = new Map();
const nothing: Held = { version: '', digest: '', bytes: 0, valid: undefined, inForce: [], problems: [] };
/** Starts the key of a resource whose name cannot be read, which no name starts with. */
const unnamed = '/';

export class SourceObjects {
  readonly #options: SourceObjectsOptions;
  readonly #held = new Map<KindName, Map<string, Held>>();
  /** By digest of the resource: equal bytes have one name, whatever their kind. */
  readonly #names = new Map<string, string>();
  #count = 0;
  #bytes = 0;
  #edits = new Map<string, Config | undefined>();
  #problems: ConfigProblem[] = [];
  #recovered = new Set<string>();
  #problemCount = 0;

  constructor(options: SourceObjectsOptions) {
    this.#options = options;
  }

  /** Number of objects. */
  get count(): number {
    return this.#count;
  }

  /** Errors and warnings of all objects. */
  get problemCount(): number {
    return this.#problemCount;
  }

  countOf(kind: KindName): number {
    return this.#held.get(kind)?.size ?? 0;
  }

  /** Versions of the objects of a kind by name, for a delta stream. */
  versionsOf(kind: KindName): Record<string, string> {
    const named = [...(this.#held.get(kind) ?? none)].filter(([name]) => !name.startsWith(unnamed));
    return Object.fromEntries(named.map(([name, { version }]) => [name, version]));
  }

  /** Resources of a kind whose versions apply, as they were received. */
  validOf(kind: KindName): readonly Uint8Array[] {
    return [...(this.#held.get(kind) ?? none).values()].flatMap(({ valid }) => valid ?? []);
  }

  /**
   * Decodes a response.
   *
   * @param removed names that a delta response removes; undefined: the response has all objects of the kind
   */
  *stage(kind: KindName, resources: Iterable<StagedResource>, removed?: readonly string[]): Steps<StagedResponse> {
    const held = this.#held.get(kind) ?? none;
    const { messages, maxObjects, maxBytes } = this.#options;
    const changed = new Map<string, Held>();
    const present = new Set<string>();
    const errors: ConfigProblem[] = [];
    let [count, bytes, rejected, hasUnnamed] = [0, 0, 0, false];
    for (const resource of resources) {
      count += 1;
      bytes += resource.bytes.length;
      const refusal =
        count > maxObjects
          ? `has more than ${maxObjects} objects of kind ${kind} (PILOT_XDS_SOURCE_MAX_OBJECTS)`
          : bytes > maxBytes
            ? `has more than ${maxBytes} bytes of kind ${kind} (PILOT_CONFIG_MAX_BYTES)`
            : undefined;
      if (refusal !== undefined) return { ...emptyResponse(kind, held.size), refusal };
      yield;
      const received = this.#receive(kind, messages.get(kind)!, resource, held);
      const { name, now } = received;
      if (name.startsWith(unnamed)) hasUnnamed = true;
      if (present.has(name)) {
        errors.push(this.#problem(kind, name, 'is sent twice: the first one applies'));
        rejected += 1;
        continue;
      }
      present.add(name);
      if (now !== held.get(name)) changed.set(name, now);
      const own = now.problems.filter(({ severity }) => severity === 'error');
      if (own.length > 0) rejected += 1;
      errors.push(...own);
    }
    const total = this.#count + [...changed.keys()].filter((name) => !held.has(name)).length;
    const size = [...changed].reduce((sum, [name, now]) => sum + now.bytes - (held.get(name)?.bytes ?? 0), this.#bytes);
    if (total > maxObjects || size > maxBytes) {
      const refusal =
        total > maxObjects
          ? `exceeds the limit of ${maxObjects} objects for a source (PILOT_XDS_SOURCE_MAX_OBJECTS)`
          : `exceeds the limit of ${maxBytes} bytes for a source (PILOT_CONFIG_MAX_BYTES)`;
      return { ...emptyResponse(kind, held.size), refusal };
    }
    // A resource whose name cannot be read may be any of those that are missing.
    const missing = hasUnnamed
      ? []
      : removed === undefined
        ? [...held.keys()].filter((name) => !present.has(name))
        : removed.filter((name) => held.has(name) && !present.has(name));
    return {
      kind,
      sent: count,
      present,
      changed,
      removed: missing,
      known: held.size,
      rejected,
      errors,
      refusal: undefined,
    };
  }

  /** Applies a response. @returns whether anything differs */
  apply(response: StagedResponse, deletes: boolean): boolean {
    for (const [name, now] of response.changed) this.#set(response.kind, name, now);
    return this.delete(response.kind, deletes ? response.removed : []) || response.changed.size > 0;
  }

  /** @returns whether any of these objects existed */
  delete(kind: KindName, names: Iterable<string>): boolean {
    const before = this.#count;
    for (const name of names) this.#set(kind, name, undefined);
    return this.#count !== before;
  }

  /** What changed since the last call. */
  takeChanges(): { edits: ConfigEdits; problems: readonly ConfigProblem[]; recovered: readonly string[] } {
    const taken = { edits: this.#edits, problems: this.#problems, recovered: [...this.#recovered] };
    this.#edits = new Map();
    this.#problems = [];
    this.#recovered = new Set();
    return taken;
  }

  #set(kind: KindName, name: string, now: Held | undefined): void {
    const all = this.#held.get(kind) ?? new Map<string, Held>();
    this.#held.set(kind, all);
    const before = all.get(name);
    if (before === now) return;
    if (before !== undefined) this.#names.delete(before.digest);
    if (now === undefined) all.delete(name);
    else {
      all.set(name, now);
      this.#names.set(now.digest, name);
    }
    this.#count += (now === undefined ? 0 : 1) - (before === undefined ? 0 : 1);
    this.#bytes += (now?.bytes ?? 0) - (before?.bytes ?? 0);
    const [old, next] = [before ?? nothing, now ?? nothing];
    this.#problemCount += next.problems.length - old.problems.length;
    for (const config of old.inForce) if (!next.inForce.includes(config)) this.#edits.set(keyOf(config), undefined);
    for (const config of next.inForce) if (!old.inForce.includes(config)) this.#edits.set(keyOf(config), config);
    if (next.problems.length > 0) this.#problems.push(...next.problems);
    else if (old.problems.length > 0) this.#recovered.add(`${this.#options.address}: ${old.problems[0]!.object}`);
  }

  #receive(
    kind: KindName,
    schema: DescMessage,
    { name: given, version, bytes }: StagedResource,
    held: ReadonlyMap<string, Held>,
  ): { name: string; now: Held } {
    const digest = hash('sha1', bytes, 'base64');
    // Most resources of a response are those of the previous one.
    const quick = given || (this.#names.get(digest) ?? nameIn(bytes));
    const known = quick === undefined ? undefined : held.get(quick);
    if (known?.digest === digest) {
      return { name: quick!, now: version === '' || version === known.version ? known : { ...known, version } };
    }
    const received = decodeResource(kind, schema, bytes);
    const name = received.name ?? `${unnamed}${digest}`;
    const before = held.get(name);
    if (before?.digest === digest) return { name, now: before };
    const about = { version: version || received.version, digest, bytes: bytes.length };
    if (given !== '' && received.name !== undefined && given !== received.name) {
      const problem = this.#problem(
        kind,
        given,
        `the resource is named "${given.slice(0, 200)}", its metadata "${name}"`,
      );
      return { name, now: { ...(before ?? nothing), ...about, problems: [problem] } };
    }
    return { name, now: { ...about, ...this.#decoded(kind, received, before, bytes) } };
  }

  /** An error of a decoder costs this object only. */
  #decoded(
    kind: KindName,
    received: ReceivedObject,
    before: Held | undefined,
    bytes: Uint8Array,
  ): Pick<Held, 'inForce' | 'problems' | 'valid'> {
    const { address, revision, keepsBytes } = this.#options;
    const source = { file: address, line: 0 };
    const { object, failure } = received;
    const lastGood = (before?.inForce ?? []).filter(({ standsFor }) => standsFor === undefined);
    const kept = { inForce: lastGood, valid: before?.valid };
    try {
      if (!isOfRevision(object as never, revision)) return { inForce: [], problems: [], valid: undefined };
      const read = readConfigObject(address, object, { creationTimestamp: 0, source });
      const found = boundedProblems(read.problems).map((problem) => problemOf(problem, read.standIns, address));
      const problems = failure === undefined ? found : [this.#problem(kind, received.name ?? '', failure)];
      if (failure !== undefined || read.config === undefined) {
        const hasLastGood = lastGood.length > 0;
        return hasLastGood
          ? { ...kept, problems: withoutEffect(problems, lastGood) }
          : { inForce: read.standIns, valid: undefined, problems };
      }
      const [known] = lastGood;
      const isSame =
        known?.resourceVersion === read.config.resourceVersion &&
        known.creationTimestamp === read.config.creationTimestamp;
      return {
        inForce: [isSame ? known : read.config],
        problems,
        valid: keepsBytes ? Uint8Array.from(bytes) : undefined,
      };
    } catch (error) {
      return {
        ...kept,
        problems: [this.#problem(kind, received.name ?? '', `cannot be decoded: ${messageOf(error)}`)],
      };
    }
  }

  #problem(kind: KindName, name: string, message: string): ConfigProblem {
    const object = name === '' || name.startsWith(unnamed) ? kind : `${kind} ${name}`;
    return {
      severity: 'error',
      code: 'SOURCE_RESOURCE_INVALID',
      place: { source: this.#options.address },
      object,
      field: '',
      message,
    };
  }
}

function emptyResponse(kind: KindName, known: number): Omit<StagedResponse, 'refusal'> {
  return { kind, sent: 0, present: new Set(), changed: none, removed: [], known, rejected: 0, errors: [] };
}

function keyOf(config: Config): string {
  return configKeyText(config);
}
