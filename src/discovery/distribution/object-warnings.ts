/** Reason why an object of the cluster takes only partial effect, found by the mesh diagnostics (src/discovery/monitor). */

export interface ObjectWarning {
  readonly generation: number;
  /** Condition reason, such as `ServerNotServed`. */
  readonly reason: string;
  readonly text: string;
}

export class ObjectWarnings {
  /** Warnings by `Kind/namespace/name`. `undefined` before the first diagnostics. */
  #warningsByObject: ReadonlyMap<string, ObjectWarning> | undefined;

  get hasDiagnostics(): boolean {
    return this.#warningsByObject !== undefined;
  }

  get keys(): Iterable<string> {
    return this.#warningsByObject?.keys() ?? [];
  }

  warningOf(key: string): ObjectWarning | undefined {
    return this.#warningsByObject?.get(key);
  }

  /** @returns keys of objects whose warning changed */
  replace(warningsByObject: ReadonlyMap<string, ObjectWarning>): readonly string[] {
    const previous = this.#warningsByObject ?? new Map<string, ObjectWarning>();
    this.#warningsByObject = warningsByObject;
    return [
      ...[...warningsByObject].flatMap(([key, warning]) => (areWarningsEqual(previous.get(key), warning) ? [] : [key])),
      ...[...previous.keys()].filter((key) => !warningsByObject.has(key)),
    ];
  }
}

function areWarningsEqual(a: ObjectWarning | undefined, b: ObjectWarning): boolean {
  return a !== undefined && a.generation === b.generation && a.reason === b.reason && a.text === b.text;
}
