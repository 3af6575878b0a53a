import { hash } from 'node:crypto';
import type { ConfigChange } from '../../../../machines/discovery/protocol.ts';
import { PersistentMap } from '../../../model/collections/persistent-map.ts';
import { SortedList } from '../../../model/collections/sorted-list.ts';
import { byAge, type Config, compareText, configKeyText } from '../../../model/config/config.ts';
import { needsPush } from '../../../model/config/config-changes.ts';
import type { ConfigSet } from '../../../model/config/config-set.ts';
import { kinds } from '../../../model/kinds/index.ts';
import { atOnce, type Steps } from '../../../runtime/turns.ts';

/** Objects by key (`Kind/namespace/name`); undefined: there is none any more. */
export type ConfigEdits = ReadonlyMap<string, Config | undefined>;

/** Oldest first. */
type Lists = Readonly<Record<string, SortedList<Config>>>;

/**
 * All configuration objects of one moment. Immutable: the next moment's shares with it all that did not change, so that an
 * edit costs the same among fifty objects and among fifty thousand.
 */
export class ConfigSnapshot {
  static readonly empty = new ConfigSnapshot([]);
  readonly byKey: ReadonlyMap<string, Config>;
  readonly #objects: PersistentMap<Config>;
  /** Lists of the kinds that something is made of. */
  readonly #lists: Lists;
  /** Sum of the hashes of what is in it, so that one object more or less costs one hash. */
  readonly #sum: bigint;
  #set: ConfigSet | undefined;
  #standIns: readonly Config[] | undefined;

  /** @param configs no two of them with the same key */
  constructor(configs: readonly Config[], derived?: Derived) {
    this.#objects = derived?.objects ?? PersistentMap.of(configs.map((config) => [configKeyText(config), config]));
    this.byKey = this.#objects;
    this.#lists = derived?.lists ?? listsOf(configs);
    this.#sum = derived?.sum ?? sumOf(this.byKey);
  }

  /** A hash of what is in it: equal for equal objects, whatever files they came from. */
  get version(): string {
    return this.#sum.toString(16).padStart(16, '0');
  }

  /** The objects by kind, oldest first. A kind's array is made when it is asked for, and stays the same until it is edited. */
  get set(): ConfigSet {
    this.#set ??= setOf(this.#lists);
    return this.#set;
  }

  /** What stands in force for objects that are refused. */
  get standIns(): readonly Config[] {
    this.#standIns ??= [...this.byKey.values()].filter(({ standsFor }) => standsFor !== undefined);
    return this.#standIns;
  }

  /**
   * This with some objects put in place of others. Lists of kinds that were not edited keep their identity; the snapshot
   * itself does when nothing differs.
   */
  edited(edits: ConfigEdits): ConfigSnapshot {
    return atOnce(this.editing(edits));
  }

  /** The same in steps. */
  *editing(edits: ConfigEdits): Steps<ConfigSnapshot> {
    let derived: Derived = { objects: this.#objects, lists: this.#lists, sum: this.#sum };
    let isOther = false;
    for (const some of inParts([...edits], editsAtOnce)) {
      const real = some.filter(([key, config]) => this.#objects.get(key) !== config);
      if (real.length > 0) derived = editedWith(derived, real);
      isOther ||= real.length > 0;
      yield;
    }
    return isOther ? new ConfigSnapshot([], { ...derived, sum: BigInt.asUintN(64, derived.sum) }) : this;
  }

  /** Keys of objects that another snapshot does not have, or has in another version. Costs little if one was edited to be the other. */
  differingKeys(other: ConfigSnapshot): Iterable<string> {
    return this.#objects.differingKeys(other.#objects);
  }

  /** What became of the objects that differ from an earlier moment, by key: deletions first (spec/discovery.md §4.3). */
  changesSince(before: ConfigSnapshot, keys?: Iterable<string>): ConfigChange[] {
    return atOnce(this.comparing(before, keys));
  }

  /** The same in steps. */
  *comparing(before: ConfigSnapshot, keys: Iterable<string> = this.differingKeys(before)): Steps<ConfigChange[]> {
    const events: Record<ConfigChange['event'], ConfigChange[]> = { delete: [], add: [], update: [] };
    for (const key of new Set(keys)) {
      yield;
      const [old, now] = [before.byKey.get(key), this.byKey.get(key)];
      if (old === now) continue;
      const event = old === undefined ? 'add' : now === undefined ? 'delete' : 'update';
      if (event !== 'update' || needsPush(old!, now!)) events[event].push({ key, event });
    }
    const changes: ConfigChange[] = [];
    for (const part of [events.delete, events.add, events.update]) {
      for (const change of part.sort((a, b) => compareText(a.key, b.key))) changes.push(change);
      yield;
    }
    return changes;
  }
}

/** What one step of an edit takes up: lists of a kind are made anew for more. */
const editsAtOnce = 64;

function* inParts<T>(items: readonly T[], length: number): Generator<readonly T[]> {
  for (let start = 0; start < items.length; start += length) yield items.slice(start, start + length);
}

function editedWith(
  { objects, lists, sum }: Derived,
  edits: readonly (readonly [string, Config | undefined])[],
): Derived {
  let total = sum;
  for (const [key, config] of edits) {
    const old = objects.get(key);
    if (old !== undefined) total -= hashOf(key, old);
    if (config !== undefined) total += hashOf(key, config);
  }
  return { objects: editedMap(objects, edits), lists: editedLists(lists, objects, edits), sum: total };
}

interface Derived {
  readonly objects: PersistentMap<Config>;
  readonly lists: Lists;
  readonly sum: bigint;
}

function sumOf(byKey: ReadonlyMap<string, Config>): bigint {
  let sum = 0n;
  for (const [key, config] of byKey) sum += hashOf(key, config);
  return BigInt.asUintN(64, sum);
}

function hashOf(key: string, { resourceVersion, creationTimestamp }: Config): bigint {
  return hash('sha1', `${key} ${resourceVersion} ${creationTimestamp}`, 'buffer').readBigUInt64BE();
}

function editedMap(
  objects: PersistentMap<Config>,
  edits: readonly (readonly [string, Config | undefined])[],
): PersistentMap<Config> {
  let left = objects;
  for (const [key, config] of edits) if (config === undefined) left = left.without(key);
  return left.withAll(edits.filter((edit): edit is readonly [string, Config] => edit[1] !== undefined));
}

function listsOf(configs: readonly Config[]): Lists {
  const ofKind = Map.groupBy(configs, ({ kind }) => kind);
  return Object.fromEntries(Object.keys(kinds).map((kind) => [kind, SortedList.of(ofKind.get(kind) ?? [], byAge)]));
}

function editedLists(
  lists: Lists,
  before: ReadonlyMap<string, Config>,
  edits: readonly (readonly [string, Config | undefined])[],
): Lists {
  const result: Record<string, SortedList<Config>> = { ...lists };
  for (const [kind, ofKind] of Map.groupBy(edits, ([key]) => key.slice(0, key.indexOf('/')))) {
    const list = lists[kind];
    // A kind that nobody makes anything of.
    if (list === undefined) continue;
    const gone = ofKind.map(([key]) => before.get(key)).filter((config) => config !== undefined);
    const added = ofKind.map(([, config]) => config).filter((config) => config !== undefined);
    result[kind] = list.edited(gone, added);
  }
  return result;
}

/** The lists as arrays, each made when it is first looked at. */
function setOf(lists: Lists): ConfigSet {
  const set = Object.defineProperties(
    {},
    Object.fromEntries(
      Object.entries(lists).map(([kind, list]) => [kind, { get: () => list.items, enumerable: true }]),
    ),
  );
  // The lists are those of all kinds, with objects of their own kinds.
  return set as ConfigSet;
}
