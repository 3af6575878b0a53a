import { hash } from 'node:crypto';
import { WeakValues } from '../../../model/collections/weak-values.ts';

/** Names in alphabetical order. Equal lists are one object. */
export class NameList {
  readonly key: string;
  readonly names: readonly string[];
  /** Indexes of names sorted by subject. Compact, because lists can have thousands of names. */
  #indexesBySubject: Uint32Array | undefined;

  constructor(key: string, names: readonly string[]) {
    this.key = key;
    this.names = names;
  }

  /** @param subjectOf the same function in each call */
  namesOf(subject: string, subjectOf: (name: string) => string): readonly string[] {
    this.#indexesBySubject ??= sortIndexesBySubject(this.names.map(subjectOf));
    const positions = this.#indexesBySubject;
    const matchingNames: string[] = [];
    for (
      let positionIndex = this.#lowerBound(subject, positions, subjectOf);
      positionIndex < positions.length;
      positionIndex++
    ) {
      const name = this.names[positions[positionIndex]!]!;
      if (subjectOf(name) !== subject) break;
      matchingNames.push(name);
    }
    return matchingNames;
  }

  #lowerBound(subject: string, positions: Uint32Array, subjectOf: (name: string) => string): number {
    let [lowIndex, highIndex] = [0, positions.length];
    while (lowIndex < highIndex) {
      const middleIndex = (lowIndex + highIndex) >>> 1;
      if (subjectOf(this.names[positions[middleIndex]!]!) < subject) lowIndex = middleIndex + 1;
      else highIndex = middleIndex;
    }
    return lowIndex;
  }
}

function sortIndexesBySubject(subjects: readonly string[]): Uint32Array {
  const positions = Uint32Array.from(subjects.keys());
  return positions.sort((a, b) => (subjects[a]! < subjects[b]! ? -1 : subjects[a]! > subjects[b]! ? 1 : a - b));
}

/** Arrays are cached by identity, so that a repeated lookup does not read their names. */
export class InternedNameLists {
  readonly #listsByArray = new WeakMap<readonly string[], NameList>();
  readonly #lists = new WeakValues<NameList>();

  intern(names: readonly string[]): NameList {
    const cachedList = this.#listsByArray.get(names);
    if (cachedList !== undefined) return cachedList;
    const sortedNames = isSorted(names) ? names : names.toSorted();
    const key = `${sortedNames.length}~${hash('sha1', sortedNames.join('\n'), 'base64url')}`;
    let list = this.#lists.get(key);
    if (list === undefined) {
      list = new NameList(key, sortedNames);
      this.#lists.set(key, list);
    }
    this.#listsByArray.set(names, list);
    return list;
  }
}

const maxModels = 8;
/** Number of names that may differ in short lists. In long lists, a sixteenth may differ. */
const minAllowedDifferences = 4;

export interface ModelledList {
  readonly model: NameList;
  readonly addedNames: readonly string[];
  readonly missingNames: readonly string[];
}

/** Finds a recent similar list (the model), with which a list shares resources. */
export class ModelLists {
  readonly #modelledLists = new WeakMap<NameList, ModelledList>();
  /** The most recent model is first. Lists keep their models in memory. */
  #models: readonly WeakRef<NameList>[] = [];

  /** Returns the list itself if there is no similar list. */
  modelFor(list: NameList): ModelledList {
    const cachedModel = this.#modelledLists.get(list);
    if (cachedModel !== undefined) return cachedModel;
    const models = this.#models.map((model) => model.deref()).filter((model) => model !== undefined);
    const modelledList = findSimilar(list, models) ?? { model: list, addedNames: [], missingNames: [] };
    const otherModels = models.filter((model) => model !== modelledList.model);
    this.#models = [modelledList.model, ...otherModels].slice(0, maxModels).map((model) => new WeakRef(model));
    this.#modelledLists.set(list, modelledList);
    return modelledList;
  }
}

function findSimilar(list: NameList, models: readonly NameList[]): ModelledList | undefined {
  for (const model of models) {
    const longerLength = Math.max(list.names.length, model.names.length);
    const difference = nameDifference(list, model, Math.max(minAllowedDifferences, longerLength / 16));
    if (difference !== undefined) return { model, ...difference };
  }
  return undefined;
}

function nameDifference(
  list: NameList,
  model: NameList,
  maxDifferences: number,
): Omit<ModelledList, 'model'> | undefined {
  const [names, otherModels] = [list.names, model.names];
  const addedNames: string[] = [];
  const missingNames: string[] = [];
  for (let [i, j] = [0, 0]; i < names.length || j < otherModels.length; ) {
    const [name, other] = [names[i], otherModels[j]];
    const isAdded = other === undefined || (name !== undefined && name < other);
    const isMissing = !isAdded && (name === undefined || other < name);
    if (isAdded) addedNames.push(name!);
    if (isMissing) missingNames.push(other);
    if (addedNames.length + missingNames.length > maxDifferences) return undefined;
    if (!isMissing) i++;
    if (!isAdded) j++;
  }
  return { addedNames, missingNames };
}

function isSorted(names: readonly string[]): boolean {
  return names.every((name, index) => index === 0 || names[index - 1]! <= name);
}
