/** A directory of YAML files as a source of configuration (spec/discovery.md §4.3). */
import { lstatSync, readFileSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import type { ConfigReading } from '../../../machines/discovery/config-controller.machine.ts';
import { compareText } from '../../model/config/config.ts';
import { type ConfigFile, readConfigFile } from '../../model/config/config-file.ts';
import { type Problem, problemText } from '../../model/config/problem.ts';
import { messageOf } from '../../runtime/errors.ts';
import { ConfigDefinitions } from './config-definitions.ts';
import { toConfigProblem } from './config-problem.ts';
import type { ConfigSnapshot } from './config-snapshot.ts';
import type { ConfigSource, SourceReading } from './config-source.ts';
import { fingerprintOf, isGone, isHidden, isYaml, Slices, walk } from './directory-walk.ts';
import { watchDirectory } from './directory-watch.ts';
import type { StopWatching, WatchHandlers } from './file-watch.ts';

/** What a reading brought, with what became of each object. */
export type DirectoryReading =
  | (Extract<ConfigReading, { outcome: 'read' }> & Extract<SourceReading, { outcome: 'read' }>)
  | Extract<ConfigReading, { outcome: 'missing' }>;

/** A file as it was read, and how to tell whether it is still the same. */
interface KnownFile {
  readonly fingerprint: string;
  readonly content: ConfigFile;
}

/**
 * Objects that say no creation time of their own are all of the same age: what is served depends on the files alone, not
 * on when this process first saw them.
 */
const unknownAge = 0;

/** More files than this changed together: looking at all of them is no dearer, and misses nothing. */
const mostSingleFiles = 256;

/**
 * Reads the directory, again and again, and keeps what is in force: the valid objects, and for each one that is not valid
 * any more the last good one. Only files that are said to have changed are looked at; all are, where that could miss
 * something. A file that did not change is not opened again.
 */
export class ConfigDirectory implements ConfigSource {
  readonly path: string;
  readonly #files = new Map<string, KnownFile>();
  readonly #definitions = new ConfigDefinitions();
  #directories: ReadonlySet<string> = new Set();
  /** Files and directories that could not be read. */
  readonly #unreadable = new Set<string>();
  #hasLinks = false;
  /** What is known of the files is complete: no reading broke off. */
  #isComplete = false;
  /** Text of each known problem → its file. */
  #problems: ReadonlyMap<string, string> = new Map();
  #lastProblems: readonly Problem[] = [];

  constructor(path: string) {
    this.path = resolve(path);
  }

  /** The objects in force. */
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
    return watchDirectory(this.path, handlers);
  }

  /**
   * Brings the snapshot up to date. Not to be called again before it has answered.
   *
   * @param paths where something happened; none: everywhere
   */
  async read(paths: readonly string[] = []): Promise<DirectoryReading> {
    const singly = this.#filesToRead(paths);
    const before = this.snapshot;
    this.#isComplete = false;
    if (singly === undefined) {
      const missing = await this.#readAll();
      if (missing !== undefined) return missing;
    } else for (const path of singly) this.#readOne(path);
    this.#isComplete = true;
    return this.#conclude(before);
  }

  /**
   * The files to look at, or undefined for all. A path is enough when it is a file's and nothing else can have changed
   * with it: not where links lead elsewhere, nor where directories come and go.
   */
  #filesToRead(paths: readonly string[]): readonly string[] | undefined {
    const tooMany = paths.length === 0 || paths.length > mostSingleFiles;
    if (!this.#isComplete || this.#hasLinks || tooMany || this.#unreadable.size > 0) return undefined;
    const files = new Set<string>();
    for (const path of new Set(paths.map((one) => resolve(one)))) {
      if (this.#isElsewhere(path)) continue;
      if (!this.#directories.has(dirname(path)) || this.#directories.has(path)) return undefined;
      if (!isFileOrNothing(path)) return undefined;
      if (isYaml(path)) files.add(path);
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

  async #readAll(): Promise<DirectoryReading | undefined> {
    let found: Awaited<ReturnType<typeof walk>>;
    try {
      found = await walk(this.path);
    } catch (error) {
      const message = isGone(error) ? 'the configuration directory does not exist' : messageOf(error);
      const problem = toConfigProblem({ severity: 'error', file: this.path, line: 0, message });
      return { outcome: 'missing', problems: [problem] };
    }
    this.#directories = found.directories;
    this.#hasLinks = found.hasLinks;
    const present = new Set(found.files.map(({ path }) => path));
    for (const path of [...this.#files.keys(), ...this.#unreadable]) {
      const isUnknown = found.failures.has(path) || isBelow(path, found.failures);
      if (!present.has(path) && !isUnknown) this.#forget(path);
    }
    const slices = new Slices();
    for (const { path, fingerprint } of found.files) {
      if (this.#files.get(path)?.fingerprint === fingerprint) continue;
      await slices.rest();
      this.#readFile(path, fingerprint);
    }
    for (const [path, error] of found.failures) this.#fail(path, error);
    return undefined;
  }

  #readOne(path: string): void {
    try {
      const stats = lstatSync(path);
      this.#readFile(path, fingerprintOf(stats));
    } catch (error) {
      if (isGone(error)) this.#forget(path);
      else this.#fail(path, error);
    }
  }

  #readFile(path: string, fingerprint: string): void {
    let text: string;
    try {
      text = readFileSync(path, 'utf8');
    } catch (error) {
      // Gone since it was found: as if it had not been found.
      if (isGone(error)) this.#forget(path);
      else this.#fail(path, error);
      return;
    }
    const known = this.#files.get(path);
    const previous = known && { previous: known.content };
    const content = readConfigFile(path, text, { creationTimestamp: unknownAge, ...previous });
    this.#files.set(path, { fingerprint, content });
    this.#unreadable.delete(path);
    this.#definitions.put(path, content);
  }

  #forget(path: string): void {
    this.#files.delete(path);
    this.#unreadable.delete(path);
    this.#definitions.put(path, undefined);
  }

  /** What cannot be read says nothing: its objects stay in force as the last good ones, those of a directory as they are. */
  #fail(path: string, error: unknown): void {
    const problem: Problem = { severity: 'error', file: path, line: 0, message: messageOf(error) };
    this.#files.delete(path);
    this.#unreadable.add(path);
    this.#definitions.put(path, { configs: [], problems: [problem] });
  }

  #conclude(before: ConfigSnapshot): DirectoryReading {
    const touched = this.#definitions.conclude();
    const { snapshot, problems } = this.#definitions;
    const known = this.#problems;
    const isNew = problems !== this.#lastProblems;
    if (isNew) this.#problems = new Map(problems.map((problem) => [problemText(problem), problem.file]));
    this.#lastProblems = problems;
    const bad = new Set(this.#problems.values());
    return {
      outcome: 'read',
      version: snapshot.version,
      objects: snapshot.byKey.size,
      changes: snapshot.changesSince(before, touched),
      touched,
      problems: isNew
        ? problems
            .filter((problem) => !known.has(problemText(problem)))
            .map((problem) => toConfigProblem(problem, snapshot.byKey))
        : [],
      problemCount: problems.length,
      recovered: isNew ? [...new Set(known.values())].filter((file) => !bad.has(file)).sort(compareText) : [],
    };
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
