/** A rejected object keeps its last valid version. If it never was valid and restricts access, a placeholder denies access. */
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
import { hasRevision } from '../sources/object-revision.ts';
import { decodeResource, nameIn, type ReceivedObject } from './received-object.ts';

export interface SourceObjectsOptions {
  readonly address: string;
  readonly messages: ReadonlyMap<KindName, DescMessage>;
  readonly revision: string;
  readonly maxObjects: number;
  readonly maxBytes: number;
  /** Whether to keep received resources for the saved state. */
  readonly keepsBytes: boolean;
}

interface XdsObject {
  readonly version: string;
  readonly digest: string;
  readonly bytes: number;
  readonly lastValidBytes: Uint8Array | undefined;
  /** The object, its last valid version, or a placeholder that denies access. */
  readonly activeConfigs: readonly Config[];
  readonly problems: readonly ConfigProblem[];
}

export interface StagedResponse {
  readonly kind: KindName;
  readonly sentCount: number;
  readonly presentNames: ReadonlySet<string>;
  readonly changedObjects: ReadonlyMap<string, XdsObject>;
  readonly removedNames: readonly string[];
  readonly knownCount: number;
  /** Includes unchanged objects. */
  readonly rejectedCount: number;
  readonly errors: readonly ConfigProblem[];
  /** Limit that the response exceeds, so that no part of it applies. `undefined` if it exceeds none. */
  readonly refusal: string | undefined;
}

export interface StagedResource {
  /** Empty unless the response is a delta response. */
  readonly name: string;
  readonly version: string;
  readonly bytes: Uint8Array;
}

const noObjects: ReadonlyMap<string, XdsObject> = new Map();
const emptyObject: XdsObject = {
  version: '',
  digest: '',
  bytes: 0,
  lastValidBytes: undefined,
  activeConfigs: [],
  problems: [],
};
/** Key prefix for resources without a readable name. No valid name starts with it. */
const unnamedKey = '/';

export class SourceObjects {
  readonly #options: SourceObjectsOptions;
  readonly #objects = new Map<KindName, Map<string, XdsObject>>();
  /** Keys are digests. Equal bytes contain equal names, regardless of the kind. */
  readonly #names = new Map<string, string>();
  #count = 0;
  #bytes = 0;
  #edits = new Map<string, Config | undefined>();
  #problems: ConfigProblem[] = [];
  #recoveredKeys = new Set<string>();
  #problemCount = 0;

  constructor(options: SourceObjectsOptions) {
    this.#options = options;
  }

  get count(): number {
    return this.#count;
  }

  get problemCount(): number {
    return this.#problemCount;
  }

  countOf(kind: KindName): number {
    return this.#objects.get(kind)?.size ?? 0;
  }

  versionsOf(kind: KindName): Record<string, string> {
    const namedObjects = [...(this.#objects.get(kind) ?? noObjects)].filter(([name]) => !name.startsWith(unnamedKey));
    return Object.fromEntries(namedObjects.map(([name, { version }]) => [name, version]));
  }

  validObjectsOf(kind: KindName): readonly Uint8Array[] {
    return [...(this.#objects.get(kind) ?? noObjects).values()].flatMap(({ lastValidBytes }) => lastValidBytes ?? []);
  }

  /** @param removedNames `undefined` if the response contains all objects */
  *stage(kind: KindName, resources: Iterable<StagedResource>, removedNames?: readonly string[]): Steps<StagedResponse> {
    const currentObjects = this.#objects.get(kind) ?? noObjects;
    const { messages, maxObjects, maxBytes } = this.#options;
    const changedObjects = new Map<string, XdsObject>();
    const receivedNames = new Set<string>();
    const errors: ConfigProblem[] = [];
    let [count, bytes, rejectedCount, hasUnnamed] = [0, 0, 0, false];
    for (const resource of resources) {
      count += 1;
      bytes += resource.bytes.length;
      const rejectionReason =
        count > maxObjects
          ? `has more than ${maxObjects} objects of kind ${kind} (PILOT_XDS_SOURCE_MAX_OBJECTS)`
          : bytes > maxBytes
            ? `has more than ${maxBytes} bytes of kind ${kind} (PILOT_CONFIG_MAX_BYTES)`
            : undefined;
      if (rejectionReason !== undefined)
        return { ...emptyResponse(kind, currentObjects.size), refusal: rejectionReason };
      yield;
      const receivedObject = this.#receive(kind, messages.get(kind)!, resource, currentObjects);
      const { name, now } = receivedObject;
      if (name.startsWith(unnamedKey)) hasUnnamed = true;
      if (receivedNames.has(name)) {
        errors.push(this.#problem(kind, name, 'is sent twice: the first one applies'));
        rejectedCount += 1;
        continue;
      }
      receivedNames.add(name);
      if (now !== currentObjects.get(name)) changedObjects.set(name, now);
      const objectErrors = now.problems.filter(({ severity }) => severity === 'error');
      if (objectErrors.length > 0) rejectedCount += 1;
      errors.push(...objectErrors);
    }
    const totalCount = this.#count + [...changedObjects.keys()].filter((name) => !currentObjects.has(name)).length;
    const size = [...changedObjects].reduce(
      (sum, [name, now]) => sum + now.bytes - (currentObjects.get(name)?.bytes ?? 0),
      this.#bytes,
    );
    if (totalCount > maxObjects || size > maxBytes) {
      const refusal =
        totalCount > maxObjects
          ? `exceeds the limit of ${maxObjects} objects for a source (PILOT_XDS_SOURCE_MAX_OBJECTS)`
          : `exceeds the limit of ${maxBytes} bytes for a source (PILOT_CONFIG_MAX_BYTES)`;
      return { ...emptyResponse(kind, currentObjects.size), refusal };
    }
    // A resource without a readable name may be any of the missing objects, so none counts as missing.
    const missingNames = hasUnnamed
      ? []
      : removedNames === undefined
        ? [...currentObjects.keys()].filter((name) => !receivedNames.has(name))
        : removedNames.filter((name) => currentObjects.has(name) && !receivedNames.has(name));
    return {
      kind,
      sentCount: count,
      presentNames: receivedNames,
      changedObjects,
      removedNames: missingNames,
      knownCount: currentObjects.size,
      rejectedCount,
      errors,
      refusal: undefined,
    };
  }

  apply(response: StagedResponse, deletes: boolean): boolean {
    for (const [name, currentObject] of response.changedObjects) this.#setObject(response.kind, name, currentObject);
    return this.delete(response.kind, deletes ? response.removedNames : []) || response.changedObjects.size > 0;
  }

  delete(kind: KindName, names: Iterable<string>): boolean {
    const previous = this.#count;
    for (const name of names) this.#setObject(kind, name, undefined);
    return this.#count !== previous;
  }

  takeChanges(): { edits: ConfigEdits; problems: readonly ConfigProblem[]; recovered: readonly string[] } {
    const takenChanges = { edits: this.#edits, problems: this.#problems, recovered: [...this.#recoveredKeys] };
    this.#edits = new Map();
    this.#problems = [];
    this.#recoveredKeys = new Set();
    return takenChanges;
  }

  #setObject(kind: KindName, name: string, currentObject: XdsObject | undefined): void {
    const objectsOfKind = this.#objects.get(kind) ?? new Map<string, XdsObject>();
    this.#objects.set(kind, objectsOfKind);
    const previous = objectsOfKind.get(name);
    if (previous === currentObject) return;
    if (previous !== undefined) this.#names.delete(previous.digest);
    if (currentObject === undefined) objectsOfKind.delete(name);
    else {
      objectsOfKind.set(name, currentObject);
      this.#names.set(currentObject.digest, name);
    }
    this.#count += (currentObject === undefined ? 0 : 1) - (previous === undefined ? 0 : 1);
    this.#bytes += (currentObject?.bytes ?? 0) - (previous?.bytes ?? 0);
    const [previousObject, next] = [previous ?? emptyObject, currentObject ?? emptyObject];
    this.#problemCount += next.problems.length - previousObject.problems.length;
    for (const config of previousObject.activeConfigs)
      if (!next.activeConfigs.includes(config)) this.#edits.set(keyOf(config), undefined);
    for (const config of next.activeConfigs)
      if (!previousObject.activeConfigs.includes(config)) this.#edits.set(keyOf(config), config);
    if (next.problems.length > 0) this.#problems.push(...next.problems);
    else if (previousObject.problems.length > 0)
      this.#recoveredKeys.add(`${this.#options.address}: ${previousObject.problems[0]!.object}`);
  }

  #receive(
    kind: KindName,
    schema: DescMessage,
    { name: resourceName, version, bytes }: StagedResource,
    currentObjects: ReadonlyMap<string, XdsObject>,
  ): { name: string; now: XdsObject } {
    const digest = hash('sha1', bytes, 'base64');
    // Avoids decoding, because most resources are unchanged since the previous response.
    const knownName = resourceName || (this.#names.get(digest) ?? nameIn(bytes));
    const currentObject = knownName === undefined ? undefined : currentObjects.get(knownName);
    if (currentObject?.digest === digest) {
      return {
        name: knownName!,
        now: version === '' || version === currentObject.version ? currentObject : { ...currentObject, version },
      };
    }
    const receivedObject = decodeResource(kind, schema, bytes);
    const name = receivedObject.name ?? `${unnamedKey}${digest}`;
    const previous = currentObjects.get(name);
    if (previous?.digest === digest) return { name, now: previous };
    const objectFields = { version: version || receivedObject.version, digest, bytes: bytes.length };
    if (resourceName !== '' && receivedObject.name !== undefined && resourceName !== receivedObject.name) {
      const problem = this.#problem(
        kind,
        resourceName,
        `the resource is named "${resourceName.slice(0, 200)}", its metadata "${name}"`,
      );
      return { name, now: { ...(previous ?? emptyObject), ...objectFields, problems: [problem] } };
    }
    return { name, now: { ...objectFields, ...this.#decodeObject(kind, receivedObject, previous, bytes) } };
  }

  /** Decodes an object. A decoder's error rejects only this object. */
  #decodeObject(
    kind: KindName,
    receivedObject: ReceivedObject,
    previous: XdsObject | undefined,
    bytes: Uint8Array,
  ): Pick<XdsObject, 'activeConfigs' | 'problems' | 'lastValidBytes'> {
    const { address, revision, keepsBytes } = this.#options;
    const source = { file: address, line: 0 };
    const { object, failure } = receivedObject;
    const lastGoodConfigs = (previous?.activeConfigs ?? []).filter(({ standsFor }) => standsFor === undefined);
    const lastValid = { activeConfigs: lastGoodConfigs, lastValidBytes: previous?.lastValidBytes };
    try {
      if (!hasRevision(object as never, revision))
        return { activeConfigs: [], problems: [], lastValidBytes: undefined };
      const objectReading = readConfigObject(address, object, { creationTimestamp: 0, source });
      const objectProblems = boundedProblems(objectReading.problems).map((problem) =>
        problemOf(problem, objectReading.standIns, address),
      );
      const problems =
        failure === undefined ? objectProblems : [this.#problem(kind, receivedObject.name ?? '', failure)];
      if (failure !== undefined || objectReading.config === undefined) {
        const hasLastGood = lastGoodConfigs.length > 0;
        return hasLastGood
          ? { ...lastValid, problems: withoutEffect(problems, lastGoodConfigs) }
          : { activeConfigs: objectReading.standIns, lastValidBytes: undefined, problems };
      }
      const [activeConfig] = lastGoodConfigs;
      const isUnchanged =
        activeConfig?.resourceVersion === objectReading.config.resourceVersion &&
        activeConfig.creationTimestamp === objectReading.config.creationTimestamp;
      return {
        activeConfigs: [isUnchanged ? activeConfig : objectReading.config],
        problems,
        lastValidBytes: keepsBytes ? Uint8Array.from(bytes) : undefined,
      };
    } catch (error) {
      return {
        ...lastValid,
        problems: [this.#problem(kind, receivedObject.name ?? '', `cannot be decoded: ${messageOf(error)}`)],
      };
    }
  }

  #problem(kind: KindName, name: string, message: string): ConfigProblem {
    const object = name === '' || name.startsWith(unnamedKey) ? kind : `${kind} ${name}`;
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

function emptyResponse(kind: KindName, currentCount: number): Omit<StagedResponse, 'refusal'> {
  return {
    kind,
    sentCount: 0,
    presentNames: new Set(),
    changedObjects: noObjects,
    removedNames: [],
    knownCount: currentCount,
    rejectedCount: 0,
    errors: [],
  };
}

function keyOf(config: Config): string {
  return configKeyText(config);
}
