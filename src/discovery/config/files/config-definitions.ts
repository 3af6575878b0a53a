/**
 * What a set of files defines: the object in force of each key, and all that is wrong. Kept up file by file, so that a
 * change of one costs what that one holds; what comes out is the same as if all files had been read together.
 */
import { type Config, compareText, configKeyText, type StandsFor } from '../../../model/config/config.ts';
import { repetition } from '../../../model/config/config-file.ts';
import type { Problem } from '../../../model/config/problem.ts';
import type { Steps } from '../../../runtime/turns.ts';
import { ConfigSnapshot } from '../snapshots/config-snapshot.ts';
import { compareWalked, walkKeyOf } from './directory-walk.ts';

/** What one file says; of a file that cannot be read, problems alone. */
export interface FileContent {
  readonly configs: readonly Config[];
  readonly problems: readonly Problem[];
  /** What is in force in the place of objects that were refused. */
  readonly standIns?: readonly Config[];
}

export class ConfigDefinitions {
  readonly #files = new Map<string, FileContent>();
  /** All objects of each key, in the order of their files and of their places there; the first is in force. */
  readonly #byKey = new Map<string, readonly Config[]>();
  /** What is to stand in force where there is no valid object, and no earlier one: by key, in the order of the files. */
  readonly #standIns = new Map<string, readonly Config[]>();
  /** The same by the keys of the objects that they stand for, in the order of the files. */
  readonly #standInsOf = new Map<string, readonly Config[]>();
  /** Keys with more than one object. */
  readonly #repeated = new Set<string>();
  /** Files with problems of their own, and what they are sorted by. */
  readonly #troubled = new Map<string, string>();
  /** Keys that no file has anything for, in force with what they had: the last good object, or what stood in for one. */
  #kept: ReadonlySet<string> = new Set();
  #touched = new Set<string>();
  #snapshot = ConfigSnapshot.empty;
  #problems: readonly Problem[] = [];
  /** What of the last good objects is kept, by those problems. */
  #lastGood: LastGood = { isKept: () => false, isOfUnread: () => false };
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
    this.#replaceStandIns(file, old?.standIns ?? [], content?.standIns ?? []);
    const isTroubled = content !== undefined && content.problems.length > 0;
    if (isTroubled || this.#troubled.has(file)) this.#problemsAreStale = true;
    if (isTroubled) this.#troubled.set(file, walkKeyOf(file));
    else this.#troubled.delete(file);
  }

  #replaceObjects(file: string, old: readonly Config[], now: readonly Config[]): void {
    const keep = new Set(now);
    const known = new Set(old);
    for (const config of old) {
      if (keep.has(config)) continue;
      const key = configKeyText(config);
      this.#define(
        key,
        this.#byKey.get(key)!.filter((other) => other !== config),
      );
    }
    // A file may have the same objects in another order: that matters only for a key which it repeats.
    for (const config of now) {
      const key = configKeyText(config);
      const others = this.#byKey.get(key) ?? [];
      if (known.has(config) && others.length === 1) continue;
      const elsewhere = others.filter((other) => other.source?.file !== file);
      const here = others.length === elsewhere.length ? [config] : now.filter((other) => isOfKey(other, key));
      this.#define(key, elsewhere.length === 0 ? here : [...elsewhere, ...here].sort(bySource));
    }
  }

  #replaceStandIns(file: string, old: readonly Config[], now: readonly Config[]): void {
    for (const key of new Set([...old, ...now].map((config) => configKeyText(config)))) {
      const elsewhere = (this.#standIns.get(key) ?? []).filter(({ source }) => source?.file !== file);
      const here = now.filter((config) => isOfKey(config, key));
      const all = [...elsewhere, ...here].sort(bySource);
      if (all.length === 0) this.#standIns.delete(key);
      else this.#standIns.set(key, all);
      this.#touched.add(key);
    }
    for (const object of new Set([...old, ...now].map(objectOf))) {
      if (object === undefined) continue;
      const elsewhere = (this.#standInsOf.get(object) ?? []).filter(({ source }) => source?.file !== file);
      const all = [...elsewhere, ...now.filter((config) => objectOf(config) === object)].sort(bySource);
      if (all.length === 0) this.#standInsOf.delete(object);
      else this.#standInsOf.set(object, all);
      this.#touched.add(object);
      this.#problemsAreStale = true;
    }
  }

  #define(key: string, configs: readonly Config[]): void {
    if (configs.length === 0) this.#byKey.delete(key);
    else this.#byKey.set(key, configs);
    this.#touched.add(key);
    if (configs.length > 1 || this.#repeated.has(key) || this.#standInsOf.has(key)) this.#problemsAreStale = true;
    if (configs.length > 1) this.#repeated.add(key);
    else this.#repeated.delete(key);
  }

  /**
   * Brings snapshot and problems up to what was put; both are as they were until it is done. Answers the keys of all
   * objects that may be others. Nothing is to be put meanwhile.
   */
  *conclude(): Steps<ReadonlySet<string>> {
    const isStale = this.#problemsAreStale;
    const problems = isStale ? yield* this.#collectProblems() : this.#problems;
    if (isStale) this.#lastGood = yield* lastGoodBy(problems);
    const lastGood = this.#lastGood;
    // Whether something stands in depends on what else is kept, too; what is kept depends on what is wrong.
    const candidates = new Set([...this.#touched, ...(isStale ? this.#kept : []), ...this.#standIns.keys()]);
    const edits = new Map<string, Config | undefined>();
    const kept = new Set(this.#kept);
    const open: string[] = [];
    for (const key of candidates) {
      yield;
      kept.delete(key);
      const [valid] = this.#byKey.get(key) ?? [];
      const before = this.#snapshot.byKey.get(key);
      const refused = this.#refusedBefore(key, valid);
      if (valid !== undefined && refused === undefined) edits.set(key, valid);
      // Where another file has the object too, what was in force may be that one's.
      else if (
        before !== undefined &&
        isWritten(before) &&
        lastGood.isKept(key, before) &&
        (refused === undefined || before.source?.file === refused.source?.file)
      ) {
        kept.add(key);
      } else open.push(key);
    }
    const isThere = open.length === 0 ? () => false : this.#presence(kept);
    for (const key of open) {
      yield;
      const before = this.#snapshot.byKey.get(key);
      const standIn = this.#standInOf(key, isThere);
      // What cannot be read says nothing new.
      const isUnread = before?.standsFor !== undefined && lastGood.isOfUnread(before);
      if (standIn === undefined && isUnread) kept.add(key);
      else edits.set(key, standIn);
    }
    const snapshot = yield* this.#snapshot.editing(edits);
    this.#kept = kept;
    this.#problems = problems;
    this.#problemsAreStale = false;
    this.#touched = new Set();
    this.#snapshot = snapshot;
    return candidates;
  }

  *#collectProblems(): Steps<readonly Problem[]> {
    const problems: Problem[] = [];
    const files = [...this.#troubled].map(([file, key]) => ({ file, key }));
    for (const { file } of files.sort((a, b) => compareText(a.key, b.key))) {
      for (const problem of this.#files.get(file)!.problems) problems.push(problem);
      yield;
    }
    const repeated: { problem: Problem; key: string }[] = [];
    for (const key of new Set([...this.#repeated, ...this.#standInsOf.keys()])) {
      yield;
      const [first, ...others] = this.#byKey.get(key) ?? [];
      if (first === undefined) continue;
      const refused = this.#refusedBefore(key, first);
      for (const config of refused === undefined ? others : [first, ...others]) {
        const [problem] = repetition(config, refused ?? first);
        if (problem !== undefined) repeated.push({ problem, key: walkKeyOf(problem.file) });
      }
    }
    repeated.sort((a, b) => compareText(a.key, b.key) || a.problem.line - b.problem.line);
    for (const { problem } of repeated) problems.push(problem);
    return problems;
  }

  /** The one that was refused and is defined before the valid ones, if there are any: of several the first counts. */
  #refusedBefore(object: string, valid = this.#byKey.get(object)?.[0]): Config | undefined {
    const standIns = this.#standInsOf.get(object);
    if (standIns === undefined || valid === undefined) return undefined;
    return standIns.find((standIn) => comesBefore(standIn, valid));
  }

  /** The widest of those that could. */
  #standInOf(key: string, isThere: (standsFor: StandsFor, file: string) => boolean): Config | undefined {
    const all = (this.#standIns.get(key) ?? []).filter(({ source, standsFor }) => !isThere(standsFor!, source!.file));
    return all.find(({ standsFor }) => standsFor?.isScopeKnown === false) ?? all[0];
  }

  /**
   * Whether an object that was refused is in force all the same: as a valid one of another place, or as an earlier version.
   * Where nobody can tell which object it was, it may be one of the same file and kind that is kept. What stands in for
   * one, and is kept from before, is no version of any.
   */
  #presence(kept: ReadonlySet<string>): (standsFor: StandsFor, file: string) => boolean {
    const versions = [...kept].map((key) => this.#snapshot.byKey.get(key)!).filter(isWritten);
    const ofFiles = new Set(versions.map(({ kind, source }) => `${kind} ${source?.file}`));
    return ({ kind, key }, file) => {
      if (key === undefined) return ofFiles.has(`${kind} ${file}`);
      const text = configKeyText(key);
      return kept.has(text) || (this.#byKey.has(text) && this.#refusedBefore(text) === undefined);
    };
  }
}

/**
 * Whether an object that was in force and that no file defines now stays in force: one that an error names, and, where
 * an error cannot tell what it is about, those of its file.
 */
interface LastGood {
  isKept(key: string, config: Config): boolean;
  isOfUnread(config: Config): boolean;
}

function* lastGoodBy(problems: readonly Problem[]): Steps<LastGood> {
  const named = new Set<string>();
  const files = new Set<string>();
  for (const { severity, key, file } of problems) {
    yield;
    if (severity !== 'error') continue;
    if (key === undefined) files.add(file);
    else named.add(configKeyText(key));
  }
  const isOfUnread = ({ source }: Config): boolean => files.has(source?.file ?? '');
  return { isKept: (key, config) => named.has(key) || isOfUnread(config), isOfUnread };
}

function isWritten({ standsFor }: Config): boolean {
  return standsFor === undefined;
}

/** The key of the object that was refused, where that can be told. */
function objectOf({ standsFor }: Config): string | undefined {
  return standsFor?.key && configKeyText(standsFor.key);
}

function comesBefore({ source: one }: Config, { source: other }: Config): boolean {
  const order = compareWalked(one?.file ?? '', other?.file ?? '');
  return order < 0 || (order === 0 && (one?.line ?? 0) < (other?.line ?? 0));
}

function isOfKey(config: Config, key: string): boolean {
  return configKeyText(config) === key;
}

/** Order by source. Objects of one file keep their order: sorting is stable. */
function bySource(a: Config, b: Config): number {
  return compareWalked(a.source?.file ?? '', b.source?.file ?? '');
}
