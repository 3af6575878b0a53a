/** A directory of YAML and JSON files as a source of configuration (spec/discovery.md §4.3). */
import { lstatSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import type { ConfigReading } from '../../../../machines/discovery/config/config-controller.machine.ts';
import type { ConfigProblem } from '../../../../machines/discovery/protocol.ts';
import { compareText } from '../../../model/config/config.ts';
import { type ConfigFile, readingConfigFile } from '../../../model/config/config-file.ts';
import { type Problem, problemText } from '../../../model/config/problem.ts';
import { fileErrorOf, isSystemError, messageOf } from '../../../runtime/errors.ts';
import { FileTooLarge, readBoundedText } from '../../../runtime/files/bounded-file.ts';
import type { StopWatching, WatchHandlers } from '../../../runtime/files/file-watch.ts';
import { linkTarget } from '../../../runtime/files/read-together.ts';
import { type Steps, Turns } from '../../../runtime/turns.ts';
import type { ConfigSnapshot } from '../snapshots/config-snapshot.ts';
import { toConfigProblem } from '../sources/config-problem.ts';
import type { ConfigSource, SourceReading } from '../sources/config-source.ts';
import { ConfigDefinitions } from './config-definitions.ts';
import { type ConfigLimits, defaultConfigLimits } from './config-limits.ts';
import {
  configNames,
  type FoundFile,
  fingerprintOf,
  isConfigName,
  isGone,
  isHidden,
  isNearlyConfigName,
  RefusedTrees,
  TooManyEntries,
  type Walk,
  walk,
} from './directory-walk.ts';
import { watchDirectory } from './directory-watch.ts';

/** What a reading brought, with what became of each object. */
export type DirectoryReading =
  | (Extract<ConfigReading, { outcome: 'read' }> & Extract<SourceReading, { outcome: 'read' }>)
  | Extract<ConfigReading, { outcome: 'missing' }>;

/** A file as it was read, and how to tell whether it is still the same. */
interface KnownFile {
  readonly fingerprint: string;
  readonly size: number;
  readonly content: ConfigFile;
}

/** Stands for the fingerprint of what may be a directory, which is looked at again when everything is. */
const foundByWalking = '';

/** Files that are tried again by themselves; beyond that they are looked at when all files are. */
const mostTriedAgain = 16;

/**
 * Objects that say no creation time of their own are all of the same age: what is served depends on the files alone, not
 * on when this process first saw them.
 */
const unknownAge = 0;

/** Readings until one counts during which Kubernetes switched a mounted directory. */
const maxReadings = 10;

/** More files than this changed together: looking at all of them is no dearer, and misses nothing. */
const mostSingleFiles = 256;

/**
 * Reads the directory, again and again, and keeps what is in force: the valid objects, and for each one that is not valid
 * any more the last good one. Only files that are said to have changed are looked at; all are, where that could miss
 * something. A file that did not change is not opened again.
 */
export class ConfigDirectory implements ConfigSource {
  readonly path: string;
  readonly #limits: ConfigLimits;
  readonly #files = new Map<string, KnownFile>();
  /** Bytes of all files that were read. */
  #bytes = 0;
  readonly #definitions = new ConfigDefinitions();
  #directories: ReadonlySet<string> = new Set();
  /** Files and directories that could not be read. With a fingerprint: a file that cannot be as long as it is that one. */
  readonly #unreadable = new Map<string, string | undefined>();
  /** Directories that were refused: they are looked at again when everything is inspected. */
  readonly #refused = new RefusedTrees();
  #hasLinks = false;
  /** The first file that is ignored for the end of its name; empty: there is none. */
  #ignored = '';
  /** Targets of Kubernetes' links when the files behind them were read last. */
  #versions: ReadonlyMap<string, string> = new Map();
  /** What is known of the files is complete: no reading broke off. */
  #isComplete = false;
  /** Text of each known problem → its file. */
  #problems: ReadonlyMap<string, string> = new Map();
  #lastProblems: readonly Problem[] = [];

  constructor(path: string, limits = defaultConfigLimits) {
    this.path = resolve(path);
    this.#limits = limits;
  }

  /** The current objects. */
  get snapshot(): ConfigSnapshot {
    return this.#definitions.snapshot;
  }

  /** Files with something in them that nobody can tell what it is, each with the first reason. */
  get unreadable(): ReadonlyMap<string, string> {
    const unknown = this.#definitions.problems.filter(
      ({ severity, key, standIn }) => severity === 'error' && key === undefined && standIn === undefined,
    );
    return new Map(unknown.map(({ file, message }): [string, string] => [file, message]).reverse());
  }

  /** OptionErrors and warnings in all. */
  get problemCount(): number {
    return this.#definitions.problems.length;
  }

  watch(handlers: WatchHandlers): StopWatching {
    return watchDirectory(this.path, handlers, this.#limits, () => this.#refused.forget());
  }

  /**
   * Brings the snapshot up to date. Not to be called again before it has answered.
   *
   * @param paths where something happened; none: everywhere
   */
  async read(paths: readonly string[] = []): Promise<DirectoryReading> {
    const singly = this.#isSwitched() ? undefined : this.#filesToRead(paths);
    const turns = new Turns();
    this.#isComplete = false;
    if (singly === undefined) {
      const missing = await this.#readOneVersion(turns);
      if (missing !== undefined) return missing;
    } else for (const path of singly) await this.#readOne(path, turns);
    const reading = await turns.through(this.#conclude());
    this.#isComplete = true;
    return reading;
  }

  /**
   * The files to look at, or undefined for all. A path is enough when it is a file's and nothing else can have changed
   * with it: not where directories come and go, nor where something hidden may be what a link leads to.
   */
  #filesToRead(paths: readonly string[]): readonly string[] | undefined {
    if (!this.#isComplete || paths.length === 0 || paths.length > mostSingleFiles) return undefined;
    const tried = [...this.#unreadable].filter(([, fingerprint]) => fingerprint === undefined);
    const files = new Set(tried.slice(0, mostTriedAgain).map(([path]) => path));
    for (const path of new Set(paths.map((one) => resolve(one)))) {
      if (this.#isElsewhere(path)) {
        if (this.#hasLinks) return undefined;
        continue;
      }
      if (this.#refused.has(path)) continue;
      if (!this.#directories.has(dirname(path)) || this.#directories.has(path)) return undefined;
      if (this.#unreadable.get(path) === foundByWalking) return undefined;
      if (!isFileOrNothing(path)) return undefined;
      if (isNearlyConfigName(path)) return undefined;
      if (isConfigName(path)) files.add(path);
    }
    return [...files];
  }

  /** Hidden, or in something hidden: nothing of ours as long as there are no links. */
  #isElsewhere(path: string): boolean {
    if (!path.startsWith(`${this.path}/`)) return false;
    return path
      .slice(this.path.length + 1)
      .split('/')
      .some(isHidden);
  }

  /** Kubernetes may switch a mounted ConfigMap while its files are read: half of the old one and half of the new one is no configuration. */
  async #readOneVersion(turns: Turns): Promise<DirectoryReading | undefined> {
    for (let attempt = 1; ; attempt++) {
      this.#versions = this.#mountedVersions();
      const missing = await this.#readAll(turns);
      if (missing !== undefined || attempt === maxReadings || !this.#isSwitched()) return missing;
    }
  }

  /** Whether a mounted ConfigMap is another one than when its files were read last. */
  #isSwitched(): boolean {
    const now = this.#mountedVersions();
    return now.size !== this.#versions.size || [...now].some(([link, target]) => this.#versions.get(link) !== target);
  }

  /** Targets of the links `..data` by their paths. A mounted directory has links to its files. */
  #mountedVersions(): ReadonlyMap<string, string> {
    const directories = this.#hasLinks ? new Set([this.path, ...this.#directories]) : [this.path];
    const versions = new Map<string, string>();
    for (const directory of directories) {
      const link = join(directory, '..data');
      const target = linkTarget(link);
      if (target !== undefined) versions.set(link, target);
    }
    return versions;
  }

  async #readAll(turns: Turns): Promise<DirectoryReading | undefined> {
    let found: Awaited<ReturnType<typeof walk>>;
    try {
      found = await walk(this.path, this.#limits, turns, this.#refused);
    } catch (error) {
      // The directory has more than anybody can look at: the reading fails as a whole, and is tried again.
      if (error instanceof TooManyEntries) throw error;
      const what = isSystemError(error, 'ENOENT') ? 'the configuration directory does not exist' : fileErrorOf(error);
      const problem = toConfigProblem({
        severity: 'error',
        code: 'CONFIG_SOURCE_UNREADABLE',
        file: this.path,
        line: 0,
        message: `${what} → create a directory that this user may read, or correct the setting that names it`,
      });
      return { outcome: 'missing', problems: [problem] };
    }
    this.#directories = found.directories;
    this.#hasLinks = found.hasLinks;
    const present = new Set(found.files.map(({ path }) => path));
    for (const path of [...this.#files.keys(), ...this.#unreadable.keys()]) {
      await turns.rest();
      const isUnknown = found.failures.has(path) || isBelow(path, found.failures);
      if (!present.has(path) && !isUnknown) this.#forget(path);
    }
    for (const file of found.files) {
      await turns.rest();
      const known = this.#files.get(file.path)?.fingerprint ?? this.#unreadable.get(file.path);
      if (known !== file.fingerprint) await this.#readFile(file, turns);
    }
    for (const [path, error] of found.failures) this.#fail(path, error, foundByWalking);
    this.#setIgnored(found.ignored);
    return undefined;
  }

  /** Of files that may have been meant, the first is reported. */
  #setIgnored({ count, first }: Walk['ignored']): void {
    if (this.#ignored !== first) this.#definitions.put(this.#ignored, undefined);
    this.#ignored = first;
    if (count === 0) return;
    const all = count === 1 ? 'is ignored' : `and ${count - 1} more files are ignored`;
    const message = `${all}: only ${configNames} are read; rename the file`;
    const about = { severity: 'warning', code: 'CONFIG_FILE_IGNORED', file: first, line: 0, message } as const;
    this.#definitions.put(first, { configs: [], problems: [about] });
  }

  async #readOne(path: string, turns: Turns): Promise<void> {
    try {
      const stats = lstatSync(path);
      await this.#readFile({ path, fingerprint: fingerprintOf(stats), size: stats.size }, turns);
    } catch (error) {
      if (isGone(error)) this.#forget(path);
      else this.#fail(path, error);
    }
  }

  async #readFile({ path, fingerprint, size }: FoundFile, turns: Turns): Promise<void> {
    const known = this.#files.get(path);
    let text: string;
    try {
      const { maxFileBytes } = this.#limits;
      if (size > maxFileBytes) throw new FileTooLarge(size, maxFileBytes);
      this.#checkRoom(size - (known?.size ?? 0));
      text = readBoundedText(path, maxFileBytes);
    } catch (error) {
      // Gone since it was found: as if it had not been found.
      if (isGone(error)) this.#forget(path);
      else this.#fail(path, error, error instanceof FileTooLarge ? fingerprint : undefined);
      return;
    }
    const previous = known && { previous: known.content };
    const content = await turns.through(readingConfigFile(path, text, { creationTimestamp: unknownAge, ...previous }));
    this.#setFile(path, { fingerprint, size, content });
    this.#unreadable.delete(path);
    this.#definitions.put(path, content);
  }

  #checkRoom(more: number): void {
    const { maxBytes } = this.#limits;
    if (more > 0 && this.#bytes + more > maxBytes)
      throw new Error(
        `exceeds the limit of ${maxBytes} bytes for all configuration files: it is ignored, and its last valid content applies; remove files that are not needed, or raise PILOT_CONFIG_MAX_BYTES`,
      );
  }

  #setFile(path: string, file: KnownFile | undefined): void {
    this.#bytes += (file?.size ?? 0) - (this.#files.get(path)?.size ?? 0);
    if (file === undefined) this.#files.delete(path);
    else this.#files.set(path, file);
  }

  #forget(path: string): void {
    this.#setFile(path, undefined);
    this.#unreadable.delete(path);
    this.#definitions.put(path, undefined);
  }

  /** What cannot be read says nothing: its objects stay in force as the last good ones, those of a directory as they are. */
  #fail(path: string, error: unknown, fingerprint?: string): void {
    const problem: Problem = {
      ...{ severity: 'error', code: 'CONFIG_SOURCE_UNREADABLE' },
      ...{ file: path, line: 0, message: messageOf(error) },
    };
    this.#setFile(path, undefined);
    this.#unreadable.set(path, fingerprint);
    this.#definitions.put(path, { configs: [], problems: [problem] });
  }

  *#conclude(): Steps<DirectoryReading> {
    const before = this.snapshot;
    const touched = yield* this.#definitions.conclude();
    const { snapshot, problems } = this.#definitions;
    const changes = yield* snapshot.comparing(before, touched);
    return {
      outcome: 'read',
      version: snapshot.version,
      objects: snapshot.byKey.size,
      changes,
      touched,
      ...(yield* this.#tellProblems(problems, snapshot)),
      problemCount: problems.length,
    };
  }

  /** Those that were not there the last time, and the files that have none any more. */
  *#tellProblems(
    problems: readonly Problem[],
    { byKey }: ConfigSnapshot,
  ): Steps<Pick<DirectoryReading & { outcome: 'read' }, 'problems' | 'recovered'>> {
    if (problems === this.#lastProblems) return { problems: [], recovered: [] };
    const known = this.#problems;
    const now = new Map<string, string>();
    const reported: ConfigProblem[] = [];
    for (const problem of problems) {
      const text = problemText(problem);
      now.set(text, problem.file);
      if (!known.has(text)) reported.push(toConfigProblem(problem, byKey));
      yield;
    }
    const bad = new Set(now.values());
    const recovered = [...new Set(known.values())].filter((file) => !bad.has(file)).sort(compareText);
    this.#problems = now;
    this.#lastProblems = problems;
    return { problems: reported, recovered };
  }
}

/** Whether a file can be looked at by itself. */
function isFileOrNothing(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false })?.isFile() ?? true;
  } catch {
    return false;
  }
}

/** Whether a path is in one of some directories. */
function isBelow(path: string, directories: ReadonlyMap<string, unknown>): boolean {
  if (directories.size === 0) return false;
  for (let at = dirname(path); basename(at) !== ''; at = dirname(at)) if (directories.has(at)) return true;
  return false;
}
