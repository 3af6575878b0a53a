import { lstatSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import type { ConfigReading } from '../../../../machines/discovery/config/config-controller.machine.ts';
import type { ConfigProblem } from '../../../../machines/discovery/protocol.ts';
import { compareText } from '../../../model/config/config.ts';
import { type ConfigFile, readConfigFileInSteps } from '../../../model/config/config-file.ts';
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
  type DirectoryWalk,
  type FoundFile,
  fingerprintOf,
  isAlmostConfigName,
  isConfigName,
  isHidden,
  isMissingPath,
  RejectedTrees,
  TooManyEntries,
  walkDirectories,
} from './directory-walk.ts';
import { watchDirectory } from './directory-watch.ts';

export type DirectoryReading =
  | (Extract<ConfigReading, { outcome: 'read' }> & Extract<SourceReading, { outcome: 'read' }>)
  | Extract<ConfigReading, { outcome: 'missing' }>;

interface KnownFile {
  readonly fingerprint: string;
  readonly size: number;
  readonly content: ConfigFile;
}

/** The path may be a directory. It is checked only when all files are read. */
const unknownFingerprint = '';

/** Other unreadable files are retried when all files are read. */
const maxRetriedFiles = 16;

/** All objects in files have the same age, so that precedence depends only on the files. */
const unknownAge = 0;

/** Maximum number of attempts to read a directory while Kubernetes switches its mount. */
const maxReadAttempts = 10;

/** For more changed files, reading all files costs no more and misses no change. */
const maxSingleFiles = 256;

/** For an object that became invalid, its last valid version applies. Reads only changed files if that cannot miss a change, otherwise all. */
export class ConfigDirectory implements ConfigSource {
  readonly path: string;
  readonly #limits: ConfigLimits;
  readonly #files = new Map<string, KnownFile>();
  #bytes = 0;
  readonly #definitions = new ConfigDefinitions();
  #directories: ReadonlySet<string> = new Set();
  /** A file with a fingerprint is retried when its fingerprint changes. */
  readonly #unreadableFiles = new Map<string, string | undefined>();
  readonly #rejectedTrees = new RejectedTrees();
  #hasLinks = false;
  #ignoredText = '';
  /** Targets of the Kubernetes links when the linked files were last read. */
  #versions: ReadonlyMap<string, string> = new Map();
  #isComplete = false;
  #problems: ReadonlyMap<string, string> = new Map();
  #lastProblems: readonly Problem[] = [];

  constructor(path: string, limits = defaultConfigLimits) {
    this.path = resolve(path);
    this.#limits = limits;
  }

  get snapshot(): ConfigSnapshot {
    return this.#definitions.snapshot;
  }

  get unreadable(): ReadonlyMap<string, string> {
    const unreadProblems = this.#definitions.problems.filter(
      ({ severity, key, standIn }) => severity === 'error' && key === undefined && standIn === undefined,
    );
    return new Map(unreadProblems.map(({ file, message }): [string, string] => [file, message]).reverse());
  }

  get problemCount(): number {
    return this.#definitions.problems.length;
  }

  watch(handlers: WatchHandlers): StopWatching {
    return watchDirectory(this.path, handlers, this.#limits, () => this.#rejectedTrees.clearFiles());
  }

  /**
   * Calls must not overlap.
   *
   * @param paths changed paths, or empty for all files
   */
  async read(paths: readonly string[] = []): Promise<DirectoryReading> {
    const filesToRead = this.#isDirectorySwitched() ? undefined : this.#filesToRead(paths);
    const workTurns = new Turns();
    this.#isComplete = false;
    if (filesToRead === undefined) {
      const missingReading = await this.#readOneVersion(workTurns);
      if (missingReading !== undefined) return missingReading;
    } else for (const path of filesToRead) await this.#readPath(path, workTurns);
    const directoryReading = await workTurns.runSteps(this.#finishReading());
    this.#isComplete = true;
    return directoryReading;
  }

  /** A file can be read individually if no other path can have changed with it. `undefined` means all files. */
  #filesToRead(paths: readonly string[]): readonly string[] | undefined {
    if (!this.#isComplete || paths.length === 0 || paths.length > maxSingleFiles) return undefined;
    const retriedFiles = [...this.#unreadableFiles].filter(([, fingerprint]) => fingerprint === undefined);
    const files = new Set(retriedFiles.slice(0, maxRetriedFiles).map(([path]) => path));
    for (const path of new Set(paths.map((writtenPath) => resolve(writtenPath)))) {
      if (this.#isHiddenPath(path)) {
        if (this.#hasLinks) return undefined;
        continue;
      }
      if (this.#rejectedTrees.has(path)) continue;
      if (!this.#directories.has(dirname(path)) || this.#directories.has(path)) return undefined;
      if (this.#unreadableFiles.get(path) === unknownFingerprint) return undefined;
      if (!isFileOrNothing(path)) return undefined;
      if (isAlmostConfigName(path)) return undefined;
      if (isConfigName(path)) files.add(path);
    }
    return [...files];
  }

  /** Hidden paths and paths in hidden directories contain configuration only if a link refers to them. */
  #isHiddenPath(path: string): boolean {
    if (!path.startsWith(`${this.path}/`)) return false;
    return path
      .slice(this.path.length + 1)
      .split('/')
      .some(isHidden);
  }

  /** If Kubernetes switches a mounted ConfigMap during the read, the directory is read again, because a mixture of two versions must not apply. */
  async #readOneVersion(workTurns: Turns): Promise<DirectoryReading | undefined> {
    for (let attempt = 1; ; attempt++) {
      this.#versions = this.#mountedVersions();
      const missingReading = await this.#readAll(workTurns);
      if (missingReading !== undefined || attempt === maxReadAttempts || !this.#isDirectorySwitched())
        return missingReading;
    }
  }

  #isDirectorySwitched(): boolean {
    const currentVersions = this.#mountedVersions();
    return (
      currentVersions.size !== this.#versions.size ||
      [...currentVersions].some(([link, target]) => this.#versions.get(link) !== target)
    );
  }

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

  async #readAll(workTurns: Turns): Promise<DirectoryReading | undefined> {
    let walkedFiles: Awaited<ReturnType<typeof walkDirectories>>;
    try {
      walkedFiles = await walkDirectories(this.path, this.#limits, workTurns, this.#rejectedTrees);
    } catch (error) {
      // The directory exceeds the entry limit. The read fails and will be retried.
      if (error instanceof TooManyEntries) throw error;
      const reason = isSystemError(error, 'ENOENT') ? 'the configuration directory does not exist' : fileErrorOf(error);
      const problem = toConfigProblem({
        severity: 'error',
        code: 'CONFIG_SOURCE_UNREADABLE',
        file: this.path,
        line: 0,
        message: `${reason} → create a directory that this user may read, or correct the setting that names it`,
      });
      return { outcome: 'missing', problems: [problem] };
    }
    this.#directories = walkedFiles.directories;
    this.#hasLinks = walkedFiles.hasLinks;
    const presentPaths = new Set(walkedFiles.files.map(({ path }) => path));
    for (const path of [...this.#files.keys(), ...this.#unreadableFiles.keys()]) {
      await workTurns.waitIfTurnEnded();
      const isUnknown = walkedFiles.failures.has(path) || isBelowDirectory(path, walkedFiles.failures);
      if (!presentPaths.has(path) && !isUnknown) this.#removeFile(path);
    }
    for (const file of walkedFiles.files) {
      await workTurns.waitIfTurnEnded();
      const previousFingerprint = this.#files.get(file.path)?.fingerprint ?? this.#unreadableFiles.get(file.path);
      if (previousFingerprint !== file.fingerprint) await this.#readFile(file, workTurns);
    }
    for (const [path, error] of walkedFiles.failures) this.#fail(path, error, unknownFingerprint);
    this.#setIgnored(walkedFiles.ignoredFiles);
    return undefined;
  }

  #setIgnored({ count, first }: DirectoryWalk['ignoredFiles']): void {
    if (this.#ignoredText !== first) this.#definitions.putFile(this.#ignoredText, undefined);
    this.#ignoredText = first;
    if (count === 0) return;
    const ignoredFilesText = count === 1 ? 'is ignored' : `and ${count - 1} more files are ignored`;
    const message = `${ignoredFilesText}: only ${configNames} are read; rename the file`;
    const problemFields = { severity: 'warning', code: 'CONFIG_FILE_IGNORED', file: first, line: 0, message } as const;
    this.#definitions.putFile(first, { configs: [], problems: [problemFields] });
  }

  async #readPath(path: string, workTurns: Turns): Promise<void> {
    try {
      const stats = lstatSync(path);
      await this.#readFile({ path, fingerprint: fingerprintOf(stats), size: stats.size }, workTurns);
    } catch (error) {
      if (isMissingPath(error)) this.#removeFile(path);
      else this.#fail(path, error);
    }
  }

  async #readFile({ path, fingerprint, size }: FoundFile, workTurns: Turns): Promise<void> {
    const previousFile = this.#files.get(path);
    let text: string;
    try {
      const { maxFileBytes } = this.#limits;
      if (size > maxFileBytes) throw new FileTooLarge(size, maxFileBytes);
      this.#checkTotalBytes(size - (previousFile?.size ?? 0));
      text = readBoundedText(path, maxFileBytes);
    } catch (error) {
      if (isMissingPath(error)) this.#removeFile(path);
      else this.#fail(path, error, error instanceof FileTooLarge ? fingerprint : undefined);
      return;
    }
    const previous = previousFile && { previous: previousFile.content };
    const content = await workTurns.runSteps(
      readConfigFileInSteps(path, text, { creationTimestamp: unknownAge, ...previous }),
    );
    this.#setFile(path, { fingerprint, size, content });
    this.#unreadableFiles.delete(path);
    this.#definitions.putFile(path, content);
  }

  #checkTotalBytes(addedBytes: number): void {
    const { maxBytes } = this.#limits;
    if (addedBytes > 0 && this.#bytes + addedBytes > maxBytes)
      throw new Error(
        `exceeds the limit of ${maxBytes} bytes for all configuration files: it is ignored, and its last valid content applies; remove files that are not needed, or raise PILOT_CONFIG_MAX_BYTES`,
      );
  }

  #setFile(path: string, file: KnownFile | undefined): void {
    this.#bytes += (file?.size ?? 0) - (this.#files.get(path)?.size ?? 0);
    if (file === undefined) this.#files.delete(path);
    else this.#files.set(path, file);
  }

  #removeFile(path: string): void {
    this.#setFile(path, undefined);
    this.#unreadableFiles.delete(path);
    this.#definitions.putFile(path, undefined);
  }

  /** Objects of an unreadable file keep their last valid version. Objects of an unreadable directory are unchanged. */
  #fail(path: string, error: unknown, fingerprint?: string): void {
    const problem: Problem = {
      ...{ severity: 'error', code: 'CONFIG_SOURCE_UNREADABLE' },
      ...{ file: path, line: 0, message: messageOf(error) },
    };
    this.#setFile(path, undefined);
    this.#unreadableFiles.set(path, fingerprint);
    this.#definitions.putFile(path, { configs: [], problems: [problem] });
  }

  *#finishReading(): Steps<DirectoryReading> {
    const previousSnapshot = this.snapshot;
    const touchedKeys = yield* this.#definitions.finishUpdate();
    const { snapshot, problems } = this.#definitions;
    const changes = yield* snapshot.compareInSteps(previousSnapshot, touchedKeys);
    return {
      outcome: 'read',
      version: snapshot.version,
      objects: snapshot.byKey.size,
      changes,
      touchedKeys,
      ...(yield* this.#reportProblems(problems, snapshot)),
      problemCount: problems.length,
    };
  }

  *#reportProblems(
    problems: readonly Problem[],
    { byKey }: ConfigSnapshot,
  ): Steps<Pick<DirectoryReading & { outcome: 'read' }, 'problems' | 'recovered'>> {
    if (problems === this.#lastProblems) return { problems: [], recovered: [] };
    const previousProblems = this.#problems;
    const currentProblems = new Map<string, string>();
    const reportedProblems: ConfigProblem[] = [];
    for (const problem of problems) {
      const text = problemText(problem);
      currentProblems.set(text, problem.file);
      if (!previousProblems.has(text)) reportedProblems.push(toConfigProblem(problem, byKey));
      yield;
    }
    const problemFiles = new Set(currentProblems.values());
    const recovered = [...new Set(previousProblems.values())]
      .filter((file) => !problemFiles.has(file))
      .sort(compareText);
    this.#problems = currentProblems;
    this.#lastProblems = problems;
    return { problems: reportedProblems, recovered };
  }
}

function isFileOrNothing(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false })?.isFile() ?? true;
  } catch {
    return false;
  }
}

function isBelowDirectory(path: string, directories: ReadonlyMap<string, unknown>): boolean {
  if (directories.size === 0) return false;
  for (let ancestor = dirname(path); basename(ancestor) !== ''; ancestor = dirname(ancestor))
    if (directories.has(ancestor)) return true;
  return false;
}
