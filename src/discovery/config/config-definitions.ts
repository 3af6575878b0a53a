/**
 * What a set of files defines: the object in force of each key, and all that is wrong. Kept up file by file, so that a
 * change of one costs what that one holds; what comes out is the same as if all files had been read together.
 */
import { type Config, configKeyOf, configKeyText } from '../../model/config/config.ts';
import { repetition } from '../../model/config/config-file.ts';
import type { Problem } from '../../model/config/problem.ts';
import { ConfigSnapshot } from './config-snapshot.ts';
import { compareWalked } from './directory-walk.ts';

/** What one file says; of a file that cannot be read, problems alone. */
export interface FileContent {
  readonly configs: readonly Config[];
  readonly problems: readonly Problem[];
}

export class ConfigDefinitions {
  readonly #files = new Map<string, FileContent>();
  /** All objects of each key, in the order of their files and of their places there; the first is in force. */
  readonly #byKey = new Map<string, readonly Config[]>();
  /** Keys with more than one object. */
  readonly #repeated = new Set<string>();
  /** Files with problems of their own. */
  readonly #troubled = new Set<string>();
  /** Keys whose last good object is in force although no file has a good one. */
  #kept: ReadonlySet<string> = new Set();
  #touched = new Set<string>();
  #snapshot = ConfigSnapshot.empty;
  #problems: readonly Problem[] = [];
  #problemsAreStale = false;

  /** The objects in force, as of the last {@link conclude}. */
  get snapshot(): ConfigSnapshot {
    return this.#snapshot;
  }

  /** Everything that is wrong, as of the last {@link conclude}: mistakes of files in the order of the files, then repetitions. */
  get problems(): readonly Problem[] {
    return this.#problems;
  }

  /** @param content undefined: the file is gone */
  put(file: string, content: FileContent | undefined): void {
    const old = this.#files.get(file);
    if (old === content) return;
    if (content === undefined) this.#files.delete(file);
    else this.#files.set(file, content);
    this.#replaceObjects(file, old?.configs ?? [], content?.configs ?? []);
    const isTroubled = content !== undefined && content.problems.length > 0;
    if (isTroubled || this.#troubled.has(file)) this.#problemsAreStale = true;
    if (isTroubled) this.#troubled.add(file);
    else this.#troubled.delete(file);
  }

  #replaceObjects(file: string, old: readonly Config[], now: readonly Config[]): void {
    const keep = new Set(now);
    const known = new Set(old);
    for (const config of old) {
      if (keep.has(config)) continue;
      const key = configKeyText(configKeyOf(config));
      this.#define(
        key,
        this.#byKey.get(key)!.filter((other) => other !== config),
      );
    }
    // Of one file the order may be another although the objects are the same: only a key that it repeats has an order.
    for (const config of now) {
      const key = configKeyText(configKeyOf(config));
      const others = this.#byKey.get(key) ?? [];
      if (known.has(config) && others.length === 1) continue;
      const elsewhere = others.filter((other) => other.source?.file !== file);
      const here = others.length === elsewhere.length ? [config] : now.filter((other) => isOfKey(other, key));
      this.#define(key, elsewhere.length === 0 ? here : [...elsewhere, ...here].sort(bySource));
    }
  }

  #define(key: string, configs: readonly Config[]): void {
    if (configs.length === 0) this.#byKey.delete(key);
    else this.#byKey.set(key, configs);
    this.#touched.add(key);
    if (configs.length > 1 || this.#repeated.has(key)) this.#problemsAreStale = true;
    if (configs.length > 1) this.#repeated.add(key);
    else this.#repeated.delete(key);
  }

  /** Brings snapshot and problems up to what was put. Answers the keys of all objects that may be others. */
  conclude(): ReadonlySet<string> {
    if (this.#problemsAreStale) this.#problems = this.#collectProblems();
    this.#problemsAreStale = false;
    const candidates = new Set([...this.#touched, ...this.#kept]);
    this.#touched = new Set();
    const edits = new Map<string, Config | undefined>();
    const kept = new Set<string>();
    const isKept = this.#lastGood();
    for (const key of candidates) {
      const [valid] = this.#byKey.get(key) ?? [];
      const before = this.#snapshot.byKey.get(key);
      if (valid === undefined && before !== undefined && isKept(key, before)) kept.add(key);
      else edits.set(key, valid);
    }
    this.#kept = kept;
    this.#snapshot =
      this.#snapshot.byKey.size === 0
        ? new ConfigSnapshot([...edits.values()].filter((config) => config !== undefined))
        : this.#snapshot.edited(edits);
    return candidates;
  }

  #collectProblems(): readonly Problem[] {
    const files = [...this.#troubled].sort(compareWalked);
    const repeated = [...this.#repeated].flatMap((key) => {
      const [first, ...others] = this.#byKey.get(key)!;
      return others.map((config) => repetition(config, first!));
    });
    return [
      ...files.flatMap((file) => this.#files.get(file)!.problems),
      ...repeated.sort((a, b) => compareWalked(a.file, b.file) || a.line - b.line),
    ];
  }

  /**
   * Whether an object that was in force and that no file defines now stays in force: one that an error names, and, where
   * an error cannot tell what it is about, those of its file.
   */
  #lastGood(): (key: string, config: Config) => boolean {
    const errors = this.#problems.filter(({ severity }) => severity === 'error');
    const named = new Set(errors.flatMap(({ key }) => (key === undefined ? [] : configKeyText(key))));
    const files = new Set(errors.filter(({ key }) => key === undefined).map(({ file }) => file));
    return (key, { source }) => named.has(key) || files.has(source?.file ?? '');
  }
}

function isOfKey(config: Config, key: string): boolean {
  return configKeyText(configKeyOf(config)) === key;
}

/** Of one file the order is kept as it is: sorting is stable. */
function bySource(a: Config, b: Config): number {
  return compareWalked(a.source?.file ?? '', b.source?.file ?? '');
}
