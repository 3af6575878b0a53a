/** Reason why an object of the cluster takes only partial effect, found by the mesh diagnostics (src/discovery/monitor). */

export interface ObjectWarning {
  readonly generation: number;
  /** Condition reason, such as `ServerNotServed`. */
  readonly reason: string;
  readonly text: string;
}

export class ObjectWarnings {
  /** Warnings by `Kind/namespace/name`. `undefined` before the first diagnostics. */
  #found: ReadonlyMap<string, ObjectWarning> | undefined;

  get isKnown(): boolean {
    return this.#found !== undefined;
  }

  get keys(): Iterable<string> {
    return this.#found?.keys() ?? [];
  }

  of(key: string): ObjectWarning | undefined {
    return this.#found?.get(key);
  }

  /** @returns keys of objects whose warning changed */
  replace(found: ReadonlyMap<string, ObjectWarning>): readonly string[] {
    const previous = this.#found ?? new Map<string, ObjectWarning>();
    this.#found = found;
    return [
      ...[...found].flatMap(([key, warning]) => (isSame(previous.get(key), warning) ? [] : [key])),
      ...[...previous.keys()].filter((key) => !found.has(key)),
    ];
  }
}

function isSame(a: ObjectWarning | undefined, b: ObjectWarning): boolean {
  return a !== undefined && a.generation === b.generation && a.reason === b.reason && a.text === b.text;
}
