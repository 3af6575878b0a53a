/** The names that a client asked for, so that clients that ask for the same ones are known to. */
import { hash } from 'node:crypto';
import { WeakValues } from '../../model/collections/weak-values.ts';

/** In alphabetical order; of equal lists there is one. */
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

function isSorted(names: readonly string[]): boolean {
  return names.every((name, index) => index === 0 || names[index - 1]! <= name);
}
