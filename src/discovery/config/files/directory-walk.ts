/** The YAML and JSON files below a directory (spec/discovery.md §4.3). */
import { type Dirent, lstatSync, opendirSync, type Stats, statSync } from 'node:fs';
import { dirname, extname, join } from 'node:path';
import { compareText } from '../../../model/config/config.ts';
import { isSystemError } from '../../../runtime/errors.ts';
import { isOfTheKernel, whatElse } from '../../../runtime/files/bounded-file.ts';
import { Turns } from '../../../runtime/turns.ts';
import { deepestDirectory, defaultConfigLimits } from './config-limits.ts';

export interface FoundFile {
  readonly path: string;
  /** Tells contents apart, as far as that can be done without reading. */
  readonly fingerprint: string;
  /** Size in bytes. */
  readonly size: number;
}

export interface Walk {
  /** Files by directory, names in order; those that links lead to come last. */
  readonly files: readonly FoundFile[];
  /** All that were walked through. */
  readonly directories: ReadonlySet<string>;
  /** Files and directories that cannot be looked at, or have too much in them, with the reason. */
  readonly failures: ReadonlyMap<string, unknown>;
  /** Files that are not read for the end of their names, as `.YAML`. */
  readonly ignored: { readonly count: number; readonly first: string };
  /** Something was reached through a symbolic link: what changes may then be elsewhere. */
  readonly hasLinks: boolean;
}

/** Hidden ones are not ours: editors' temporary files, Kubernetes' versions. */
export function isHidden(name: string): boolean {
  return name.startsWith('.');
}

const extensions: readonly string[] = ['.yaml', '.yml', '.json'];

/** The extensions that `kubectl apply -f DIRECTORY` reads. */
export function isConfigName(name: string): boolean {
  return extensions.includes(extname(name));
}

/** May have been meant as configuration: `.YAML`. */
export function isNearlyConfigName(name: string): boolean {
  return extensions.includes(extname(name).toLowerCase()) && !isConfigName(name);
}

/** Names of files that are read. */
export const configNames = '*.yaml, *.yml and *.json';

/** There is nothing at a path, or what was on the way to it is no directory any more. */
export function isGone(error: unknown): boolean {
  return isSystemError(error, 'ENOENT') || isSystemError(error, 'ENOTDIR');
}

/** A text that differs for another file, another size or another time of any change. */
export function fingerprintOf({ dev, ino, size, mtimeMs, ctimeMs }: Stats): string {
  return `${dev}:${ino}:${size}:${mtimeMs}:${ctimeMs}`;
}

/**
 * Finds files at any depth. Throws when the directory itself cannot be read, or has too many names. A link may lead
 * anywhere; what it leads to is a failure of the link when it has more names than are left of the limit, so that the rest
 * is found all the same.
 *
 * @param refused trees that are not walked again as long as they are known in it; those that are too large come into it
 */
export async function walk(
  directory: string,
  { maxEntries } = defaultConfigLimits,
  turns = new Turns(),
  refused = new RefusedTrees(),
): Promise<Walk> {
  const walker = new Walker(maxEntries, turns, refused);
  await walker.walk(directory);
  refused.keepOnly(walker.failures);
  return walker;
}

/**
 * Trees that had too many names, by the directory or link that leads there: to find that out again costs as much as
 * all that may be there. It holds until they are forgotten, or their root is not what it was: another directory, or names in
 * it that came or went. What changes further below is not seen.
 */
export class RefusedTrees {
  readonly #trees = new Map<string, { readonly fingerprint: string; readonly error: TooManyEntries }>();

  /** Why the tree at this path is still not to be walked. */
  reasonFor(path: string): TooManyEntries | undefined {
    const tree = this.#trees.get(path);
    return tree !== undefined && treeFingerprintOf(path) === tree.fingerprint ? tree.error : undefined;
  }

  /** Whether a path is that of such a tree, or is somewhere in it. */
  has(path: string): boolean {
    if (this.#trees.size === 0) return false;
    for (let at = path; dirname(at) !== at; at = dirname(at)) if (this.reasonFor(at) !== undefined) return true;
    return false;
  }

  /** @param fingerprint of before it was walked */
  add(path: string, fingerprint: string, error: TooManyEntries): void {
    this.#trees.set(path, { fingerprint, error });
  }

  keepOnly(paths: ReadonlyMap<string, unknown>): void {
    for (const path of this.#trees.keys()) if (!paths.has(path)) this.#trees.delete(path);
  }

  forget(): void {
    this.#trees.clear();
  }
}

/** Fingerprint of the link, if the path is one, and of the directory itself; empty when there is none. */
function treeFingerprintOf(path: string): string {
  try {
    return `${fingerprintOf(lstatSync(path))} ${fingerprintOf(statSync(path))}`;
  } catch {
    return '';
  }
}

interface Place {
  readonly path: string;
  /** Which directories are above it, whatever their names. */
  readonly above: readonly string[];
}

/** So many names are asked of the file system at once. */
const entriesAtOnce = 256;

export class TooManyEntries extends Error {
  constructor(most: number) {
    super(
      `exceeds the limit of ${most} entries in all configuration directories: it is ignored, and its last valid content applies; remove other files, or raise PILOT_CONFIG_MAX_ENTRIES`,
    );
  }
}

class Walker implements Walk {
  files: FoundFile[] = [];
  directories = new Set<string>();
  readonly failures = new Map<string, unknown>();
  hasLinks = false;
  ignored = { count: 0, first: '' };
  readonly #maxEntries: number;
  readonly #turns: Turns;
  readonly #refused: RefusedTrees;
  /** How many names were found. */
  #entries = 0;
  /** How many names were looked at, those of what was given up among them: a thousand links to too much cost no more than two walks. */
  #looked = 0;
  /** Links, which come last: what they lead to must not keep what is here from being found. */
  #links: Place[] = [];

  constructor(maxEntries: number, turns: Turns, refused: RefusedTrees) {
    this.#maxEntries = maxEntries;
    this.#turns = turns;
    this.#refused = refused;
  }

  async walk(root: string): Promise<void> {
    await this.#walkDirectory({ path: root, above: [] }, statSync(root));
    for (let link = this.#links.shift(); link !== undefined; link = this.#links.shift()) {
      const { path } = link;
      await this.#attemptTree(path, () => this.#look(link!, isConfigName(path)));
    }
  }

  /** What is known to have too much in it is not walked. */
  async #attemptTree(path: string, look: () => Promise<void>): Promise<void> {
    const reason = this.#refused.reasonFor(path);
    if (reason !== undefined) {
      this.failures.set(path, reason);
      return;
    }
    const fingerprint = treeFingerprintOf(path);
    await this.#attempt(path, look);
    const failure = this.failures.get(path);
    // What others took the room of may be small, and find room the next time, when those are not walked any more.
    if (failure instanceof TooManyEntries && this.#looked <= 2 * this.#maxEntries)
      this.#refused.add(path, fingerprint, failure);
  }

  /** What has too much in it is as if it had not been looked at. */
  async #attempt(path: string, look: () => Promise<void>): Promise<void> {
    const [files, directories, links, entries] = [
      this.files.length,
      this.directories.size,
      this.#links.length,
      this.#entries,
    ];
    try {
      await look();
    } catch (error) {
      // Gone meanwhile, or a link to nothing: as if it were not there.
      if (isGone(error)) return;
      if (error instanceof TooManyEntries) {
        this.files = this.files.slice(0, files);
        this.directories = new Set([...this.directories].slice(0, directories));
        this.#links = this.#links.slice(0, links);
        for (const failed of this.failures.keys()) if (failed.startsWith(`${path}/`)) this.failures.delete(failed);
        this.#entries = entries;
      }
      this.failures.set(path, error);
    }
  }

  async #walkDirectory({ path, above }: Place, stats: Stats): Promise<void> {
    const identity = `${stats.dev}:${stats.ino}`;
    // A link to a directory above would be walked for ever.
    if (above.includes(identity)) return;
    if (above.length > 0 && isOfTheKernel(path))
      throw new Error(
        'is a directory of a kernel file system such as /proc: it is ignored, and its last valid content applies',
      );
    if (above.length >= deepestDirectory)
      throw new Error(
        `is nested in ${deepestDirectory} directories, which is the limit: it is ignored, and its last valid content applies`,
      );
    const entries = await this.#entriesOf(path);
    this.directories.add(path);
    for (const entry of entries) {
      await this.#turns.rest();
      const below = { path: join(path, entry.name), above: [...above, identity] };
      if (entry.isSymbolicLink()) {
        this.hasLinks = true;
        this.#links.push(below);
      } else if (above.length === 0) {
        const look = () => this.#look(below, isConfigName(entry.name));
        await (entry.isDirectory() ? this.#attemptTree(below.path, look) : this.#attempt(below.path, look));
      } else await this.#lookBelow(below, isConfigName(entry.name));
    }
  }

  /** What is too much is too much for what is above, too. */
  async #lookBelow(place: Place, isOurs: boolean): Promise<void> {
    try {
      await this.#look(place, isOurs);
    } catch (error) {
      if (error instanceof TooManyEntries) throw error;
      if (!isGone(error)) this.failures.set(place.path, error);
    }
  }

  async #look(place: Place, isOurs: boolean): Promise<void> {
    const stats = statSync(place.path);
    if (stats.isDirectory()) await this.#walkDirectory(place, stats);
    else if (isOurs) {
      const other = whatElse(stats);
      if (other !== undefined) throw new Error(`must be a regular file, is ${other}: it is ignored`);
      this.files.push({ path: place.path, fingerprint: fingerprintOf(stats), size: stats.size });
    }
  }

  /** Names of a directory that are to be looked at, in order. */
  async #entriesOf(path: string): Promise<readonly Dirent[]> {
    const entries: Dirent[] = [];
    const directory = opendirSync(path, { bufferSize: entriesAtOnce });
    try {
      for (let entry = directory.readSync(); entry !== null; entry = directory.readSync()) {
        this.#count();
        const isOurs = entry.isDirectory() || entry.isSymbolicLink() || isConfigName(entry.name);
        if (isHidden(entry.name)) continue;
        if (isOurs) entries.push(entry);
        else if (isNearlyConfigName(entry.name)) {
          const { count, first } = this.ignored;
          this.ignored = { count: count + 1, first: first || join(path, entry.name) };
        }
        await this.#turns.rest();
      }
    } finally {
      directory.closeSync();
    }
    return entries.sort((a, b) => compareText(a.name, b.name));
  }

  #count(): void {
    this.#entries++;
    this.#looked++;
    if (this.#entries > this.#maxEntries || this.#looked > 2 * this.#maxEntries)
      throw new TooManyEntries(this.#maxEntries);
  }
}

/** The order of a walk: by the names on the way, not by the letters of the path. */
export function compareWalked(a: string, b: string): number {
  return compareText(walkKeyOf(a), walkKeyOf(b));
}

/** Texts in the order of their letters are paths in the order of a walk: no name has a letter before this one. */
export function walkKeyOf(path: string): string {
  return path.replaceAll('/', '\0');
}
