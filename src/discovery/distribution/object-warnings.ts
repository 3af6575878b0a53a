/** Why objects of a cluster take effect only in part, as the diagnostics of the mesh find it (src/discovery/monitor). */

export interface ObjectWarning {
  /** Generation of the object that was looked at. */
  readonly generation: number;
  /** Reason of a condition: `ServerNotServed`. */
  readonly reason: string;
  readonly text: string;
}

export class ObjectWarnings {
  /** By `Kind/namespace/name`; undefined before the first diagnostics are complete. */
  #found: ReadonlyMap<string, ObjectWarning> | undefined;

  /** Before that, statuses keep the warnings that they have. */
  get isKnown(): boolean {
    return this.#found !== undefined;
  }

  get keys(): Iterable<string> {
    return this.#found?.keys() ?? [];
  }

  of(key: string): ObjectWarning | undefined {
    return this.#found?.get(key);
  }

  /** @returns keys of the objects whose warning is a different one now */
  replace(found: ReadonlyMap<string, ObjectWarning>): readonly string[] {
    const before = this.#found ?? new Map<string, ObjectWarning>();
    this.#found = found;
    return [
      ...[...found].flatMap(([key, warning]) => (isSame(before.get(key), warning) ? [] : [key])),
      ...[...before.keys()].filter((key) => !found.has(key)),
    ];
  }
}

function isSame(a: ObjectWarning | undefined, b: ObjectWarning): boolean {
  return a !== undefined && a.generation === b.generation && a.reason === b.reason && a.text === b.text;
}
