/** The mesh diagnostics (src/discovery/monitor) find objects that take only partial effect. */

export interface ObjectWarning {
  readonly generation: number;
  /** Condition reason, such as `ServerNotServed`. */
  readonly reason: string;
  readonly text: string;
}

export class ObjectWarnings {
  /** `undefined` before the first diagnostics. */
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
