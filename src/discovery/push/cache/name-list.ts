import { hash } from 'node:crypto';
import { WeakValues } from '../../../model/collections/weak-values.ts';

/** Names in alphabetical order. Equal lists are one object. */
export class NameList {
  readonly key: string;
  readonly names: readonly string[];
  /** Indexes of names sorted by subject. Compact, because lists can have thousands of names. */
  #bySubject: Uint32Array | undefined;

  constructor(key: string, names: readonly string[]) {
    this.key = key;
    this.names = names;
  }

  /** @param subjectOf the same function in each call */
  namesOf(subject: string, subjectOf: (name: string) => string): readonly string[] {
    this.#bySubject ??= inOrderOf(this.names.map(subjectOf));
    const places = this.#bySubject;
    const found: string[] = [];
    for (let at = this.#lowerBound(subject, places, subjectOf); at < places.length; at++) {
      const name = this.names[places[at]!]!;
      if (subjectOf(name) !== subject) break;
      found.push(name);
    }
    return found;
  }

  #lowerBound(subject: string, places: Uint32Array, subjectOf: (name: string) => string): number {
    let [low, high] = [0, places.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (subjectOf(this.names[places[middle]!]!) < subject) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function inOrderOf(subjects: readonly string[]): Uint32Array {
  const places = Uint32Array.from(subjects.keys());
  return places.sort((a, b) => (subjects[a]! < subjects[b]! ? -1 : subjects[a]! > subjects[b]! ? 1 : a - b));
}

/** Caches arrays by identity, so that a repeated lookup does not read their names. */
export class InternedNameLists {
  readonly #ofArrays = new WeakMap<readonly string[], NameList>();
  readonly #lists = new WeakValues<NameList>();

  intern(names: readonly string[]): NameList {
    const known = this.#ofArrays.get(names);
    if (known !== undefined) return known;
    const sorted = isSorted(names) ? names : names.toSorted();
    const key = `${sorted.length}~${hash('sha1', sorted.join('\n'), 'base64url')}`;
    let list = this.#lists.get(key);
    if (list === undefined) {
      list = new NameList(key, sorted);
      this.#lists.set(key, list);
    }
    this.#ofArrays.set(names, list);
    return list;
  }
}

const maxModels = 8;
/** Minimum number of names that may differ. In long lists, a sixteenth may differ. */
const minAllowedDifferences = 4;

export interface ModelledList {
  readonly model: NameList;
  readonly added: readonly string[];
  readonly missing: readonly string[];
}

/** Finds a recent similar list (the model). Resources are built for the model and shared by similar lists. */
export class ModelLists {
  readonly #modelled = new WeakMap<NameList, ModelledList>();
  /** Models, most recent first. Lists keep their models in memory. */
  #models: readonly WeakRef<NameList>[] = [];

  /** Returns the list itself if there is no similar list. */
  modelFor(list: NameList): ModelledList {
    const known = this.#modelled.get(list);
    if (known !== undefined) return known;
    const models = this.#models.map((model) => model.deref()).filter((model) => model !== undefined);
    const modelled = findSimilar(list, models) ?? { model: list, added: [], missing: [] };
    const otherModels = models.filter((model) => model !== modelled.model);
    this.#models = [modelled.model, ...otherModels].slice(0, maxModels).map((model) => new WeakRef(model));
    this.#modelled.set(list, modelled);
    return modelled;
  }
}

function findSimilar(list: NameList, models: readonly NameList[]): ModelledList | undefined {
  for (const model of models) {
    const longer = Math.max(list.names.length, model.names.length);
    const difference = nameDifference(list, model, Math.max(minAllowedDifferences, longer / 16));
    if (difference !== undefined) return { model, ...difference };
  }
  return undefined;
}

/** `undefined` if more than `maxDifferences` names differ. */
function nameDifference(
  list: NameList,
  model: NameList,
  maxDifferences: number,
): Omit<ModelledList, 'model'> | undefined {
  const [names, otherModels] = [list.names, model.names];
  const added: string[] = [];
  const missing: string[] = [];
  for (let [i, j] = [0, 0]; i < names.length || j < otherModels.length; ) {
    const [name, other] = [names[i], otherModels[j]];
    const isAdded = other === undefined || (name !== undefined && name < other);
    const isMissing = !isAdded && (name === undefined || other < name);
    if (isAdded) added.push(name!);
    if (isMissing) missing.push(other);
    if (added.length + missing.length > maxDifferences) return undefined;
    if (!isMissing) i++;
    if (!isAdded) j++;
  }
  return { added, missing };
}

function isSorted(names: readonly string[]): boolean {
  return names.every((name, index) => index === 0 || names[index - 1]! <= name);
}
