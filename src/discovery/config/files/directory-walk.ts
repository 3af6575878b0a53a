import { type Dirent, lstatSync, opendirSync, type Stats, statSync } from 'node:fs';
import { dirname, extname, join } from 'node:path';
import { compareText } from '../../../model/config/config.ts';
import { isSystemError } from '../../../runtime/errors.ts';
import { isOnKernelFileSystem, nonRegularKind } from '../../../runtime/files/bounded-file.ts';
import { Turns } from '../../../runtime/turns.ts';
import { defaultConfigLimits, maxDirectoryDepth } from './config-limits.ts';

export interface FoundFile {
  readonly path: string;
  /** Changes with the content, as far as file metadata shows. */
  readonly fingerprint: string;
  readonly size: number;
}

export interface DirectoryWalk {
  /** Ordered by directory, then by name. Files behind links are last. */
  readonly files: readonly FoundFile[];
  readonly directories: ReadonlySet<string>;
  /** Errors by path, for files and directories that are unreadable or exceed the entry limit. */
  readonly failures: ReadonlyMap<string, unknown>;
  /** Files are ignored because of their extension, such as `.YAML`. */
  readonly ignoredFiles: { readonly count: number; readonly first: string };
  /** If true, content may change outside the tree. */
  readonly hasLinks: boolean;
}

/** Hidden names are temporary files of editors, or version directories of a Kubernetes mount. */
export function isHidden(name: string): boolean {
  return name.startsWith('.');
}

const extensions: readonly string[] = ['.yaml', '.yml', '.json'];

export function isConfigName(name: string): boolean {
  return extensions.includes(extname(name));
}

/** The extension differs only in case from one that is read. */
export function isAlmostConfigName(name: string): boolean {
  return extensions.includes(extname(name).toLowerCase()) && !isConfigName(name);
}

export const configNames = '*.yaml, *.yml and *.json';

export function isMissingPath(error: unknown): boolean {
  return isSystemError(error, 'ENOENT') || isSystemError(error, 'ENOTDIR');
}

export function fingerprintOf({ dev, ino, size, mtimeMs, ctimeMs }: Stats): string {
  return `${dev}:${ino}:${size}:${mtimeMs}:${ctimeMs}`;
}

/**
 * Links can refer to any directory. A link to a target with too many entries is reported as a failure.
 *
 * @param rejectedTrees trees with too many entries, which are skipped; updated by the call
 * @throws if the directory is unreadable or has too many entries
 */
export async function walkDirectories(
  directory: string,
  { maxEntries } = defaultConfigLimits,
  workTurns = new Turns(),
  rejectedTrees = new RejectedTrees(),
): Promise<DirectoryWalk> {
  const walker = new Walker(maxEntries, workTurns, rejectedTrees);
  await walker.walk(directory);
  rejectedTrees.removeAllExcept(walker.failures);
  return walker;
}

/**
 * A tree with too many entries is skipped until it is removed from this list or its root directory changes; changes further below are not detected.
 */
export class RejectedTrees {
  readonly #trees = new Map<string, { readonly fingerprint: string; readonly error: TooManyEntries }>();

  reasonFor(path: string): TooManyEntries | undefined {
    const tree = this.#trees.get(path);
    return tree !== undefined && treeFingerprintOf(path) === tree.fingerprint ? tree.error : undefined;
  }

  has(path: string): boolean {
    if (this.#trees.size === 0) return false;
    for (let ancestor = path; dirname(ancestor) !== ancestor; ancestor = dirname(ancestor))
      if (this.reasonFor(ancestor) !== undefined) return true;
    return false;
  }

  add(path: string, fingerprint: string, error: TooManyEntries): void {
    this.#trees.set(path, { fingerprint, error });
  }

  removeAllExcept(paths: ReadonlyMap<string, unknown>): void {
    for (const path of this.#trees.keys()) if (!paths.has(path)) this.#trees.delete(path);
  }

  clearFiles(): void {
    this.#trees.clear();
  }
}

/** Includes the link that leads to the directory. Empty if it does not exist. */
function treeFingerprintOf(path: string): string {
  try {
    return `${fingerprintOf(lstatSync(path))} ${fingerprintOf(statSync(path))}`;
  } catch {
    return '';
  }
}

interface WalkEntry {
  readonly path: string;
  /** Contains device and inode of each parent directory. */
  readonly parentIdentities: readonly string[];
}

const entriesPerStep = 256;

export class TooManyEntries extends Error {
  constructor(maxEntries: number) {
    super(
      `exceeds the limit of ${maxEntries} entries in all configuration directories: it is ignored, and its last valid content applies; remove other files, or raise PILOT_CONFIG_MAX_ENTRIES`,
    );
  }
}

class Walker implements DirectoryWalk {
  files: FoundFile[] = [];
  directories = new Set<string>();
  readonly failures = new Map<string, unknown>();
  hasLinks = false;
  ignoredFiles = { count: 0, first: '' };
  readonly #maxEntries: number;
  readonly #workTurns: Turns;
  readonly #rejectedTrees: RejectedTrees;
  #entries = 0;
  /** Includes entries of rejected trees, which ensures that a thousand links to large trees cost at most two walks. */
  #visitedEntries = 0;
  /** Links are walked last, so that their targets do not use up the limit for other files. */
  #links: WalkEntry[] = [];

  constructor(maxEntries: number, workTurns: Turns, rejectedTrees: RejectedTrees) {
    this.#maxEntries = maxEntries;
    this.#workTurns = workTurns;
    this.#rejectedTrees = rejectedTrees;
  }

  async walk(root: string): Promise<void> {
    await this.#walkDirectory({ path: root, parentIdentities: [] }, statSync(root));
    for (let link = this.#links.shift(); link !== undefined; link = this.#links.shift()) {
      const { path } = link;
      await this.#attemptTree(path, () => this.#visitPath(link!, isConfigName(path)));
    }
  }

  async #attemptTree(path: string, visitTree: () => Promise<void>): Promise<void> {
    const reason = this.#rejectedTrees.reasonFor(path);
    if (reason !== undefined) {
      this.failures.set(path, reason);
      return;
    }
    const fingerprint = treeFingerprintOf(path);
    await this.#attempt(path, visitTree);
    const failure = this.failures.get(path);
    // With more visited entries, the tree may have failed only because other trees used up the limit.
    if (failure instanceof TooManyEntries && this.#visitedEntries <= 2 * this.#maxEntries)
      this.#rejectedTrees.add(path, fingerprint, failure);
  }

  async #attempt(path: string, visitPath: () => Promise<void>): Promise<void> {
    const [files, directories, links, entries] = [
      this.files.length,
      this.directories.size,
      this.#links.length,
      this.#entries,
    ];
    try {
      await visitPath();
    } catch (error) {
      // The path is a dangling link, or was removed after it was found.
      if (isMissingPath(error)) return;
      if (error instanceof TooManyEntries) {
        this.files = this.files.slice(0, files);
        this.directories = new Set([...this.directories].slice(0, directories));
        this.#links = this.#links.slice(0, links);
        for (const failedPath of this.failures.keys())
          if (failedPath.startsWith(`${path}/`)) this.failures.delete(failedPath);
        this.#entries = entries;
      }
      this.failures.set(path, error);
    }
  }

  async #walkDirectory({ path, parentIdentities }: WalkEntry, stats: Stats): Promise<void> {
    const identity = `${stats.dev}:${stats.ino}`;
    // Following a link to a parent directory would never end.
    if (parentIdentities.includes(identity)) return;
    if (parentIdentities.length > 0 && isOnKernelFileSystem(path))
      throw new Error(
        'is a directory of a kernel file system such as /proc: it is ignored, and its last valid content applies',
      );
    if (parentIdentities.length >= maxDirectoryDepth)
      throw new Error(
        `is nested in ${maxDirectoryDepth} directories, which is the limit: it is ignored, and its last valid content applies`,
      );
    const entries = await this.#entriesOf(path);
    this.directories.add(path);
    for (const entry of entries) {
      await this.#workTurns.waitIfTurnEnded();
      const childDirectory = { path: join(path, entry.name), parentIdentities: [...parentIdentities, identity] };
      if (entry.isSymbolicLink()) {
        this.hasLinks = true;
        this.#links.push(childDirectory);
      } else if (parentIdentities.length === 0) {
        const visitChild = () => this.#visitPath(childDirectory, isConfigName(entry.name));
        await (entry.isDirectory()
          ? this.#attemptTree(childDirectory.path, visitChild)
          : this.#attempt(childDirectory.path, visitChild));
      } else await this.#visitDirectory(childDirectory, isConfigName(entry.name));
    }
  }

  /** If a directory has too many entries, the visit of its parent fails too. */
  async #visitDirectory(walkPlace: WalkEntry, isConfigPath: boolean): Promise<void> {
    try {
      await this.#visitPath(walkPlace, isConfigPath);
    } catch (error) {
      if (error instanceof TooManyEntries) throw error;
      if (!isMissingPath(error)) this.failures.set(walkPlace.path, error);
    }
  }

  async #visitPath(walkPlace: WalkEntry, isConfigPath: boolean): Promise<void> {
    const stats = statSync(walkPlace.path);
    if (stats.isDirectory()) await this.#walkDirectory(walkPlace, stats);
    else if (isConfigPath) {
      const nonRegularType = nonRegularKind(stats);
      if (nonRegularType !== undefined) throw new Error(`must be a regular file, is ${nonRegularType}: it is ignored`);
      this.files.push({ path: walkPlace.path, fingerprint: fingerprintOf(stats), size: stats.size });
    }
  }

  async #entriesOf(path: string): Promise<readonly Dirent[]> {
    const entries: Dirent[] = [];
    const directory = opendirSync(path, { bufferSize: entriesPerStep });
    try {
      for (let entry = directory.readSync(); entry !== null; entry = directory.readSync()) {
        this.#countEntry();
        const isConfigPath = entry.isDirectory() || entry.isSymbolicLink() || isConfigName(entry.name);
        if (isHidden(entry.name)) continue;
        if (isConfigPath) entries.push(entry);
        else if (isAlmostConfigName(entry.name)) {
          const { count, first } = this.ignoredFiles;
          this.ignoredFiles = { count: count + 1, first: first || join(path, entry.name) };
        }
        await this.#workTurns.waitIfTurnEnded();
      }
    } finally {
      directory.closeSync();
    }
    return entries.sort((a, b) => compareText(a.name, b.name));
  }

  #countEntry(): void {
    this.#entries++;
    this.#visitedEntries++;
    if (this.#entries > this.#maxEntries || this.#visitedEntries > 2 * this.#maxEntries)
      throw new TooManyEntries(this.#maxEntries);
  }
}

/** Path segments are compared in the order of a walk. */
export function compareWalkOrder(a: string, b: string): number {
  return compareText(walkKeyOf(a), walkKeyOf(b));
}

/** The separator becomes the character that sorts before all others. */
export function walkKeyOf(path: string): string {
  return path.replaceAll('/', '\0');
}
