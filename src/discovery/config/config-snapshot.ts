import { hash } from 'node:crypto';
import type { ConfigChange } from '../../../machines/discovery/protocol.ts';
import { byAge, type Config, compareText, configKeyOf, configKeyText } from '../../model/config/config.ts';
import { needsPush } from '../../model/config/config-changes.ts';
import { type ConfigSet, configSetOf } from '../../model/push-context/build-push-context.ts';

/** Objects by key (`Kind/namespace/name`); undefined: there is none any more. */
export type ConfigEdits = ReadonlyMap<string, Config | undefined>;

/** All configuration objects of one moment. Immutable. */
export class ConfigSnapshot {
  static readonly empty = new ConfigSnapshot([]);
  readonly byKey: ReadonlyMap<string, Config>;
  /** Sum of the hashes of what is in it, so that one object more or less costs one hash. */
  readonly #sum: bigint;
  #set: ConfigSet | undefined;

  /** @param configs no two of them with the same key */
  constructor(configs: readonly Config[], derived?: Derived) {
    this.byKey = derived?.byKey ?? new Map(configs.map((config) => [configKeyText(configKeyOf(config)), config]));
    this.#sum = derived?.sum ?? sumOf(this.byKey);
    this.#set = derived?.set;
  }

  /** A hash of what is in it: equal for equal objects, whatever files they came from. */
  get version(): string {
    return this.#sum.toString(16).padStart(16, '0');
  }

  /** The objects by kind, oldest first. */
  get set(): ConfigSet {
    this.#set ??= configSetOf([...this.byKey.values()]);
    return this.#set;
  }

  /**
   * This with some objects put in place of others. Lists of kinds that were not edited keep their identity; the snapshot
   * itself does when nothing differs.
   */
  edited(edits: ConfigEdits): ConfigSnapshot {
    const real = [...edits].filter(([key, config]) => this.byKey.get(key) !== config);
    if (real.length === 0) return this;
    const byKey = new Map(this.byKey);
    let sum = this.#sum;
    for (const [key, config] of real) {
      const old = byKey.get(key);
      if (old !== undefined) sum -= hashOf(key, old);
      if (config === undefined) byKey.delete(key);
      else {
        sum += hashOf(key, config);
        byKey.set(key, config);
      }
    }
    const set = editedSet(this.set, this.byKey, real);
    return new ConfigSnapshot([], { byKey, sum: BigInt.asUintN(64, sum), set });
  }

  /** What became of the objects that differ from an earlier moment, by key: deletions first (spec/discovery.md §4.3). */
  changesSince(before: ConfigSnapshot, keys: Iterable<string> = [...before.byKey.keys(), ...this.byKey.keys()]) {
    const events: Record<ConfigChange['event'], ConfigChange[]> = { delete: [], add: [], update: [] };
    for (const key of new Set(keys)) {
      const [old, now] = [before.byKey.get(key), this.byKey.get(key)];
      if (old === now) continue;
      const event = old === undefined ? 'add' : now === undefined ? 'delete' : 'update';
      if (event !== 'update' || needsPush(old!, now!)) events[event].push({ key, event });
    }
    return [events.delete, events.add, events.update].flatMap((part) => part.sort((a, b) => compareText(a.key, b.key)));
  }
}

interface Derived {
  readonly byKey: ReadonlyMap<string, Config>;
  readonly sum: bigint;
  readonly set: ConfigSet;
}

function sumOf(byKey: ReadonlyMap<string, Config>): bigint {
  let sum = 0n;
  for (const [key, config] of byKey) sum += hashOf(key, config);
  return BigInt.asUintN(64, sum);
}

function hashOf(key: string, { resourceVersion }: Config): bigint {
  return hash('sha1', `${key} ${resourceVersion}`, 'buffer').readBigUInt64BE();
}

function editedSet(
  set: ConfigSet,
  before: ReadonlyMap<string, Config>,
  edits: readonly (readonly [string, Config | undefined])[],
): ConfigSet {
  const lists: Record<string, readonly Config[]> = { ...set };
  for (const [kind, ofKind] of Map.groupBy(edits, ([key]) => key.slice(0, key.indexOf('/')))) {
    const list = lists[kind];
    // A kind that nobody makes anything of.
    if (list === undefined) continue;
    lists[kind] = ofKind.length > 32 ? resorted(list, before, ofKind) : edited(list, before, ofKind);
  }
  // The lists are those of the set, with objects of their own kinds.
  return lists as unknown as ConfigSet;
}

function edited(
  list: readonly Config[],
  before: ReadonlyMap<string, Config>,
  edits: readonly (readonly [string, Config | undefined])[],
): readonly Config[] {
  const result = [...list];
  for (const [key, config] of edits) {
    const old = before.get(key);
    if (old !== undefined && config !== undefined && byAge(old, config) === 0) result[placeOf(result, old)] = config;
    else {
      if (old !== undefined) result.splice(placeOf(result, old), 1);
      if (config !== undefined) result.splice(placeOf(result, config), 0, config);
    }
  }
  return result;
}

function resorted(
  list: readonly Config[],
  before: ReadonlyMap<string, Config>,
  edits: readonly (readonly [string, Config | undefined])[],
): readonly Config[] {
  const gone = new Set(edits.map(([key]) => before.get(key)));
  const added = edits.flatMap(([, config]) => (config === undefined ? [] : [config]));
  return [...list.filter((config) => !gone.has(config)), ...added].sort(byAge);
}

/** Index of the first that is not older. */
function placeOf(list: readonly Config[], config: Config): number {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (byAge(list[middle]!, config) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
