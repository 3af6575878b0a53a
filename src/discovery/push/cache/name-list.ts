/** The names that a client asked for, so that clients that ask for the same ones are known to. */
import { hash } from 'node:crypto';
import { WeakValues } from '../../../model/collections/weak-values.ts';

/** Names in alphabetical order; equal lists are one object. */
export class NameList {
  readonly key: string;
  readonly names: readonly string[];
  /** Places of the names in the order of their subjects: there may be many lists, of thousands of names each. */
  #bySubject: Uint32Array | undefined;

  constructor(key: string, names: readonly string[]) {
    this.key = key;
    this.names = names;
  }

  /** @param subjectOf always the same function for a list. */
  namesOf(subject: string, subjectOf: (name: string) => string): readonly string[] {
    this.#bySubject ??= inOrderOf(this.names.map(subjectOf));
    const places = this.#bySubject;
    const found: string[] = [];
    for (let at = this.#firstOf(subject, places, subjectOf); at < places.length; at++) {
      const name = this.names[places[at]!]!;
      if (subjectOf(name) !== subject) break;
      found.push(name);
    }
    return found;
  }

  /** Where the subject is, or would be. */
  #firstOf(subject: string, places: Uint32Array, subjectOf: (name: string) => string): number {
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

/** Finds the list of an array of names: arrays are known by identity, so that this costs nothing the second time. */
export class NameLists {
  readonly #ofArrays = new WeakMap<readonly string[], NameList>();
  readonly #lists = new WeakValues<NameList>();

  of(names: readonly string[]): NameList {
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

/** Lists that a new one is compared with. */
const maxModels = 8;
/** Names that may differ however short the lists are; in longer ones a sixteenth of the names may. */
const fewNames = 4;

/** A list as another one with a few differences. */
export interface ModelledList {
  readonly model: NameList;
  /** Names that the model has not. */
  readonly added: readonly string[];
  /** Names that only the model has. */
  readonly missing: readonly string[];
}

/**
 * Finds for a list one of those that were there before which is nearly the same: what is made of the names is made for that
 * list, and shared by all that are like it.
 */
export class ModelLists {
  readonly #modelled = new WeakMap<NameList, ModelledList>();
  /** Latest first; held by the lists that are like them. */
  #models: readonly WeakRef<NameList>[] = [];

  /** The same each time for a list; its own model if it is like no other. */
  of(list: NameList): ModelledList {
    const known = this.#modelled.get(list);
    if (known !== undefined) return known;
    const models = this.#models.map((model) => model.deref()).filter((model) => model !== undefined);
    const modelled = firstAlike(list, models) ?? { model: list, added: [], missing: [] };
    const others = models.filter((model) => model !== modelled.model);
    this.#models = [modelled.model, ...others].slice(0, maxModels).map((model) => new WeakRef(model));
    this.#modelled.set(list, modelled);
    return modelled;
  }
}

function firstAlike(list: NameList, models: readonly NameList[]): ModelledList | undefined {
  for (const model of models) {
    const longer = Math.max(list.names.length, model.names.length);
    const difference = nameDifference(list, model, Math.max(fewNames, longer / 16));
    if (difference !== undefined) return { model, ...difference };
  }
  return undefined;
}

/** Undefined when more differ than `most`. */
function nameDifference(list: NameList, model: NameList, most: number): Omit<ModelledList, 'model'> | undefined {
  const [names, others] = [list.names, model.names];
  const added: string[] = [];
  const missing: string[] = [];
  for (let [i, j] = [0, 0]; i < names.length || j < others.length; ) {
    const [name, other] = [names[i], others[j]];
    const isAdded = other === undefined || (name !== undefined && name < other);
    const isMissing = !isAdded && (name === undefined || other < name);
    if (isAdded) added.push(name!);
    if (isMissing) missing.push(other);
    if (added.length + missing.length > most) return undefined;
    if (!isMissing) i++;
    if (!isAdded) j++;
  }
  return { added, missing };
}

function isSorted(names: readonly string[]): boolean {
  return names.every((name, index) => index === 0 || names[index - 1]! <= name);
}
