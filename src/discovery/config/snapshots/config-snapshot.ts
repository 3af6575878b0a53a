import { hash } from 'node:crypto';
import type { ConfigChange } from '../../../../machines/discovery/protocol.ts';
import { PersistentMap } from '../../../model/collections/persistent-map.ts';
import { SortedList } from '../../../model/collections/sorted-list.ts';
import { type Config, compareAge, compareText, configKeyText } from '../../../model/config/config.ts';
import { needsPush } from '../../../model/config/config-changes.ts';
import type { ConfigSet } from '../../../model/config/config-set.ts';
import { kinds } from '../../../model/kinds/index.ts';
import { runToEnd, type Steps } from '../../../runtime/turns.ts';

/** `undefined` removes the object. */
export type ConfigEdits = ReadonlyMap<string, Config | undefined>;

/** The oldest object is first. */
type ConfigLists = Readonly<Record<string, SortedList<Config>>>;

/** Immutable: snapshots share unchanged objects, so the cost of an edit does not depend on the number of objects. */
export class ConfigSnapshot {
  static readonly empty = new ConfigSnapshot([]);
  readonly byKey: ReadonlyMap<string, Config>;
  readonly #objects: PersistentMap<Config>;
  readonly #lists: ConfigLists;
  /** A sum of hashes lets an edit hash only the edited object. */
  readonly #sum: bigint;
  #set: ConfigSet | undefined;
  #placeholders: readonly Config[] | undefined;

  constructor(configs: readonly Config[], derived?: DerivedIndexes) {
    this.#objects = derived?.objects ?? PersistentMap.of(configs.map((config) => [configKeyText(config), config]));
    this.byKey = this.#objects;
    this.#lists = derived?.lists ?? listsOf(configs);
    this.#sum = derived?.checksum ?? sumOf(this.byKey);
  }

  /** Equal for equal objects, regardless of their source. */
  get version(): string {
    return this.#sum.toString(16).padStart(16, '0');
  }

  /** The oldest object is first. The array of a kind stays the same until an edit. */
  get set(): ConfigSet {
    this.#set ??= setOf(this.#lists);
    return this.#set;
  }

  get placeholders(): readonly Config[] {
    this.#placeholders ??= [...this.byKey.values()].filter(({ standsFor }) => standsFor !== undefined);
    return this.#placeholders;
  }

  /** Lists of other kinds keep their identity. Returns the same snapshot if nothing differs. */
  withEdits(edits: ConfigEdits): ConfigSnapshot {
    return runToEnd(this.editInSteps(edits));
  }

  *editInSteps(edits: ConfigEdits): Steps<ConfigSnapshot> {
    let nextDerived: DerivedIndexes = { objects: this.#objects, lists: this.#lists, checksum: this.#sum };
    let hasChanged = false;
    for (const editsPart of splitIntoParts([...edits], editsPerStep)) {
      const effectiveEdits = editsPart.filter(([key, config]) => this.#objects.get(key) !== config);
      if (effectiveEdits.length > 0) nextDerived = editConfigs(nextDerived, effectiveEdits);
      hasChanged ||= effectiveEdits.length > 0;
      yield;
    }
    return hasChanged
      ? new ConfigSnapshot([], { ...nextDerived, checksum: BigInt.asUintN(64, nextDerived.checksum) })
      : this;
  }

  /** Fast if one snapshot was edited from the other. */
  differingKeys(other: ConfigSnapshot): Iterable<string> {
    return this.#objects.differingKeys(other.#objects);
  }

  /** Deletions come first. */
  changesSince(previous: ConfigSnapshot, keys?: Iterable<string>): ConfigChange[] {
    return runToEnd(this.compareInSteps(previous, keys));
  }

  *compareInSteps(
    previous: ConfigSnapshot,
    keys: Iterable<string> = this.differingKeys(previous),
  ): Steps<ConfigChange[]> {
    const events: Record<ConfigChange['event'], ConfigChange[]> = { delete: [], add: [], update: [] };
    for (const key of new Set(keys)) {
      yield;
      const [previousConfig, currentConfig] = [previous.byKey.get(key), this.byKey.get(key)];
      if (previousConfig === currentConfig) continue;
      const event = previousConfig === undefined ? 'add' : currentConfig === undefined ? 'delete' : 'update';
      if (event !== 'update' || needsPush(previousConfig!, currentConfig!)) events[event].push({ key, event });
    }
    const changes: ConfigChange[] = [];
    for (const changesOfEvent of [events.delete, events.add, events.update]) {
      for (const change of changesOfEvent.sort((a, b) => compareText(a.key, b.key))) changes.push(change);
      yield;
    }
    return changes;
  }
}

/** Larger edits rebuild a kind's list several times. */
const editsPerStep = 64;

function* splitIntoParts<T>(items: readonly T[], length: number): Generator<readonly T[]> {
  for (let start = 0; start < items.length; start += length) yield items.slice(start, start + length);
}

function editConfigs(
  { objects, lists, checksum }: DerivedIndexes,
  edits: readonly (readonly [string, Config | undefined])[],
): DerivedIndexes {
  let nextChecksum = checksum;
  for (const [key, config] of edits) {
    const previousConfig = objects.get(key);
    if (previousConfig !== undefined) nextChecksum -= hashOf(key, previousConfig);
    if (config !== undefined) nextChecksum += hashOf(key, config);
  }
  return { objects: applyEdits(objects, edits), lists: editedLists(lists, objects, edits), checksum: nextChecksum };
}

interface DerivedIndexes {
  readonly objects: PersistentMap<Config>;
  readonly lists: ConfigLists;
  readonly checksum: bigint;
}

function sumOf(configByKey: ReadonlyMap<string, Config>): bigint {
  let sum = 0n;
  for (const [key, config] of configByKey) sum += hashOf(key, config);
  return BigInt.asUintN(64, sum);
}

function hashOf(key: string, { resourceVersion, creationTimestamp }: Config): bigint {
  return hash('sha1', `${key} ${resourceVersion} ${creationTimestamp}`, 'buffer').readBigUInt64BE();
}

function applyEdits(
  objects: PersistentMap<Config>,
  edits: readonly (readonly [string, Config | undefined])[],
): PersistentMap<Config> {
  let remainingObjects = objects;
  for (const [key, config] of edits) if (config === undefined) remainingObjects = remainingObjects.withoutKey(key);
  return remainingObjects.withAll(edits.filter((edit): edit is readonly [string, Config] => edit[1] !== undefined));
}

function listsOf(configs: readonly Config[]): ConfigLists {
  const configsByKind = Map.groupBy(configs, ({ kind }) => kind);
  return Object.fromEntries(
    Object.keys(kinds).map((kind) => [kind, SortedList.of(configsByKind.get(kind) ?? [], compareAge)]),
  );
}

function editedLists(
  lists: ConfigLists,
  previous: ReadonlyMap<string, Config>,
  edits: readonly (readonly [string, Config | undefined])[],
): ConfigLists {
  const result: Record<string, SortedList<Config>> = { ...lists };
  for (const [kind, editsOfKind] of Map.groupBy(edits, ([key]) => key.slice(0, key.indexOf('/')))) {
    const list = lists[kind];
    // No configuration is generated from this kind.
    if (list === undefined) continue;
    const removedConfigs = editsOfKind.map(([key]) => previous.get(key)).filter((config) => config !== undefined);
    const addedConfigs = editsOfKind.map(([, config]) => config).filter((config) => config !== undefined);
    result[kind] = list.withEdits(removedConfigs, addedConfigs);
  }
  return result;
}

function setOf(lists: ConfigLists): ConfigSet {
  const set = Object.defineProperties(
    {},
    Object.fromEntries(
      Object.entries(lists).map(([kind, list]) => [kind, { get: () => list.items, enumerable: true }]),
    ),
  );
  return set as ConfigSet;
}
