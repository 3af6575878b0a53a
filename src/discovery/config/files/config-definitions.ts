/** Objects of all configuration files. Updating a file costs time proportional to that file, not to the directory. */
import { type Config, compareText, configKeyText, type PlaceholderInfo } from '../../../model/config/config.ts';
import { repetition } from '../../../model/config/config-file.ts';
import type { Problem } from '../../../model/config/problem.ts';
import type { Steps } from '../../../runtime/turns.ts';
import { ConfigSnapshot } from '../snapshots/config-snapshot.ts';
import { compareWalkOrder, walkKeyOf } from './directory-walk.ts';

/** An unreadable file has only problems. */
export interface FileContent {
  readonly configs: readonly Config[];
  readonly problems: readonly Problem[];
  /** Placeholders that apply instead of rejected objects. */
  readonly standIns?: readonly Config[];
}

export class ConfigDefinitions {
  readonly #files = new Map<string, FileContent>();
  /** All objects of each key, sorted by file and position. The first one applies. */
  readonly #configsByKey = new Map<string, readonly Config[]>();
  /** A placeholder applies if there is neither a valid object nor an earlier version. */
  readonly #placeholders = new Map<string, readonly Config[]>();
  readonly #placeholdersOf = new Map<string, readonly Config[]>();
  readonly #repeatedKeys = new Set<string>();
  readonly #filesWithProblems = new Map<string, string>();
  /** Keys that no file defines, but whose last valid object or placeholder still applies. */
  #retainedKeys: ReadonlySet<string> = new Set();
  #touchedKeys = new Set<string>();
  #snapshot = ConfigSnapshot.empty;
  #problems: readonly Problem[] = [];
  #lastGood: LastGoodConfigs = { isRetained: () => false, isFromUnreadFile: () => false };
  #problemsAreStale = false;

  get snapshot(): ConfigSnapshot {
    return this.#snapshot;
  }

  get problems(): readonly Problem[] {
    return this.#problems;
  }

  /** @param content `undefined` if the file was removed */
  putFile(file: string, content: FileContent | undefined): void {
    const previousContent = this.#files.get(file);
    if (previousContent === content) return;
    if (content === undefined) this.#files.delete(file);
    else this.#files.set(file, content);
    this.#replaceObjects(file, previousContent?.configs ?? [], content?.configs ?? []);
    this.#replacePlaceholders(file, previousContent?.standIns ?? [], content?.standIns ?? []);
    const hasProblems = content !== undefined && content.problems.length > 0;
    if (hasProblems || this.#filesWithProblems.has(file)) this.#problemsAreStale = true;
    if (hasProblems) this.#filesWithProblems.set(file, walkKeyOf(file));
    else this.#filesWithProblems.delete(file);
  }

  #replaceObjects(file: string, previousConfigs: readonly Config[], currentConfigs: readonly Config[]): void {
    const keysToKeep = new Set(currentConfigs);
    const previousSet = new Set(previousConfigs);
    for (const config of previousConfigs) {
      if (keysToKeep.has(config)) continue;
      const key = configKeyText(config);
      this.#define(
        key,
        this.#configsByKey.get(key)!.filter((configOfKey) => configOfKey !== config),
      );
    }
    // Objects of a file may have changed their order, which matters only for duplicate keys.
    for (const config of currentConfigs) {
      const key = configKeyText(config);
      const configsOfKey = this.#configsByKey.get(key) ?? [];
      if (previousSet.has(config) && configsOfKey.length === 1) continue;
      const otherConfigs = configsOfKey.filter((configOfKey) => configOfKey.source?.file !== file);
      const fileConfigs =
        configsOfKey.length === otherConfigs.length ? [config] : currentConfigs.filter((other) => hasKey(other, key));
      this.#define(
        key,
        otherConfigs.length === 0 ? fileConfigs : [...otherConfigs, ...fileConfigs].sort(compareSource),
      );
    }
  }

  #replacePlaceholders(file: string, previousConfigs: readonly Config[], currentConfigs: readonly Config[]): void {
    for (const key of new Set([...previousConfigs, ...currentConfigs].map((config) => configKeyText(config)))) {
      const otherPlaceholders = (this.#placeholders.get(key) ?? []).filter(({ source }) => source?.file !== file);
      const filePlaceholders = currentConfigs.filter((config) => hasKey(config, key));
      const nextPlaceholders = [...otherPlaceholders, ...filePlaceholders].sort(compareSource);
      if (nextPlaceholders.length === 0) this.#placeholders.delete(key);
      else this.#placeholders.set(key, nextPlaceholders);
      this.#touchedKeys.add(key);
    }
    for (const object of new Set([...previousConfigs, ...currentConfigs].map(objectOf))) {
      if (object === undefined) continue;
      const otherPlaceholders = (this.#placeholdersOf.get(object) ?? []).filter(({ source }) => source?.file !== file);
      const all = [...otherPlaceholders, ...currentConfigs.filter((config) => objectOf(config) === object)].sort(
        compareSource,
      );
      if (all.length === 0) this.#placeholdersOf.delete(object);
      else this.#placeholdersOf.set(object, all);
      this.#touchedKeys.add(object);
      this.#problemsAreStale = true;
    }
  }

  #define(key: string, configs: readonly Config[]): void {
    if (configs.length === 0) this.#configsByKey.delete(key);
    else this.#configsByKey.set(key, configs);
    this.#touchedKeys.add(key);
    if (configs.length > 1 || this.#repeatedKeys.has(key) || this.#placeholdersOf.has(key))
      this.#problemsAreStale = true;
    if (configs.length > 1) this.#repeatedKeys.add(key);
    else this.#repeatedKeys.delete(key);
  }

  /**
   * Snapshot and problems keep their previous values until this completes, and {@link putFile} must not be called until then.
   *
   * @returns the keys of objects that may have changed
   */
  *finishUpdate(): Steps<ReadonlySet<string>> {
    const isStale = this.#problemsAreStale;
    const problems = isStale ? yield* this.#collectProblems() : this.#problems;
    if (isStale) this.#lastGood = yield* findLastGood(problems);
    const lastGood = this.#lastGood;
    // All placeholders are checked, because the problems determine which last valid objects apply instead of them.
    const candidates = new Set([
      ...this.#touchedKeys,
      ...(isStale ? this.#retainedKeys : []),
      ...this.#placeholders.keys(),
    ]);
    const edits = new Map<string, Config | undefined>();
    const retainedKeys = new Set(this.#retainedKeys);
    const openKeys: string[] = [];
    for (const key of candidates) {
      yield;
      retainedKeys.delete(key);
      const [validConfig] = this.#configsByKey.get(key) ?? [];
      const current = this.#snapshot.byKey.get(key);
      const isRejected = this.#findEarlierRejected(key, validConfig);
      if (validConfig !== undefined && isRejected === undefined) edits.set(key, validConfig);
      // If another file also defines the object, the active one may be from that file.
      else if (
        current !== undefined &&
        isWrittenConfig(current) &&
        lastGood.isRetained(key, current) &&
        (isRejected === undefined || current.source?.file === isRejected.source?.file)
      ) {
        retainedKeys.add(key);
      } else openKeys.push(key);
    }
    const hasActiveVersion = openKeys.length === 0 ? () => false : this.#presence(retainedKeys);
    for (const key of openKeys) {
      yield;
      const current = this.#snapshot.byKey.get(key);
      const placeholder = this.#placeholderOf(key, hasActiveVersion);
      // Objects of a file that became unreadable still apply.
      const isUnread = current?.standsFor !== undefined && lastGood.isFromUnreadFile(current);
      if (placeholder === undefined && isUnread) retainedKeys.add(key);
      else edits.set(key, placeholder);
    }
    const snapshot = yield* this.#snapshot.editInSteps(edits);
    this.#retainedKeys = retainedKeys;
    this.#problems = problems;
    this.#problemsAreStale = false;
    this.#touchedKeys = new Set();
    this.#snapshot = snapshot;
    return candidates;
  }

  *#collectProblems(): Steps<readonly Problem[]> {
    const problems: Problem[] = [];
    const files = [...this.#filesWithProblems].map(([file, key]) => ({ file, key }));
    for (const { file } of files.sort((a, b) => compareText(a.key, b.key))) {
      for (const problem of this.#files.get(file)!.problems) problems.push(problem);
      yield;
    }
    const repetitionProblems: { problem: Problem; key: string }[] = [];
    for (const key of new Set([...this.#repeatedKeys, ...this.#placeholdersOf.keys()])) {
      yield;
      const [first, ...duplicates] = this.#configsByKey.get(key) ?? [];
      if (first === undefined) continue;
      const isRejected = this.#findEarlierRejected(key, first);
      for (const config of isRejected === undefined ? duplicates : [first, ...duplicates]) {
        const [problem] = repetition(config, isRejected ?? first);
        if (problem !== undefined) repetitionProblems.push({ problem, key: walkKeyOf(problem.file) });
      }
    }
    repetitionProblems.sort((a, b) => compareText(a.key, b.key) || a.problem.line - b.problem.line);
    for (const { problem } of repetitionProblems) problems.push(problem);
    return problems;
  }

  #findEarlierRejected(object: string, validConfig = this.#configsByKey.get(object)?.[0]): Config | undefined {
    const objectPlaceholders = this.#placeholdersOf.get(object);
    if (objectPlaceholders === undefined || validConfig === undefined) return undefined;
    return objectPlaceholders.find((placeholder) => precedesInWalkOrder(placeholder, validConfig));
  }

  #placeholderOf(
    key: string,
    hasActiveVersion: (standsFor: PlaceholderInfo, file: string) => boolean,
  ): Config | undefined {
    const placeholdersOfKey = (this.#placeholders.get(key) ?? []).filter(
      ({ source, standsFor }) => !hasActiveVersion(standsFor!, source!.file),
    );
    return placeholdersOfKey.find(({ standsFor }) => standsFor?.isScopeKnown === false) ?? placeholdersOfKey[0];
  }

  /**
   * A valid object of another file, or an earlier version, can apply instead of a rejected one. If the key is unknown, any kept object of the same
   * file and kind may be its earlier version.
   */
  #presence(retainedKeys: ReadonlySet<string>): (standsFor: PlaceholderInfo, file: string) => boolean {
    const versions = [...retainedKeys].map((key) => this.#snapshot.byKey.get(key)!).filter(isWrittenConfig);
    const presentFiles = new Set(versions.map(({ kind, source }) => `${kind} ${source?.file}`));
    return ({ kind, key }, file) => {
      if (key === undefined) return presentFiles.has(`${kind} ${file}`);
      const text = configKeyText(key);
      return retainedKeys.has(text) || (this.#configsByKey.has(text) && this.#findEarlierRejected(text) === undefined);
    };
  }
}

/** Last valid objects that no file defines. Such an object is retained if an error names it, or if its file has an error without a key. */
interface LastGoodConfigs {
  isRetained(key: string, config: Config): boolean;
  isFromUnreadFile(config: Config): boolean;
}

function* findLastGood(problems: readonly Problem[]): Steps<LastGoodConfigs> {
  const namedKeys = new Set<string>();
  const files = new Set<string>();
  for (const { severity, key, file } of problems) {
    yield;
    if (severity !== 'error') continue;
    if (key === undefined) files.add(file);
    else namedKeys.add(configKeyText(key));
  }
  const isFromUnreadFile = ({ source }: Config): boolean => files.has(source?.file ?? '');
  return {
    isRetained: (key, config) => namedKeys.has(key) || isFromUnreadFile(config),
    isFromUnreadFile: isFromUnreadFile,
  };
}

function isWrittenConfig({ standsFor }: Config): boolean {
  return standsFor === undefined;
}

function objectOf({ standsFor }: Config): string | undefined {
  return standsFor?.key && configKeyText(standsFor.key);
}

function precedesInWalkOrder({ source: one }: Config, { source: other }: Config): boolean {
  const fileComparison = compareWalkOrder(one?.file ?? '', other?.file ?? '');
  return fileComparison < 0 || (fileComparison === 0 && (one?.line ?? 0) < (other?.line ?? 0));
}

function hasKey(config: Config, key: string): boolean {
  return configKeyText(config) === key;
}

/** The sort is stable, so objects of one file keep their order. */
function compareSource(a: Config, b: Config): number {
  return compareWalkOrder(a.source?.file ?? '', b.source?.file ?? '');
}
