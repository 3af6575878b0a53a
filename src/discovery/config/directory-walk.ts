/** The YAML files below a directory (spec/discovery.md §4.3). */
import { type Dirent, readdirSync, realpathSync, type Stats, statSync } from 'node:fs';
import { extname, join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { compareText } from '../../model/config/config.ts';
import { isSystemError } from '../../runtime/errors.ts';

export interface FoundFile {
  readonly path: string;
  /** Another one: another content, as far as can be told without reading. */
  readonly fingerprint: string;
}

export interface Walk {
  /** By directory, names in order. */
  readonly files: FoundFile[];
  /** All that were walked through. */
  readonly directories: Set<string>;
  /** Files and directories that cannot be looked at, with the reason. */
  readonly failures: Map<string, unknown>;
  /** Something was reached through a symbolic link: what changes may then be elsewhere. */
  hasLinks: boolean;
}

/** After so long the event loop gets its turn: a large directory must not keep probes waiting. */
const sliceMs = 20;

/** Lets the event loop have its turn every so often. */
export class Slices {
  #end = performance.now() + sliceMs;

  async rest(): Promise<void> {
    if (performance.now() < this.#end) return;
    await nextTurn();
    this.#end = performance.now() + sliceMs;
  }
}

/** Hidden ones are not ours: editors' temporary files, Kubernetes' versions. */
export function isHidden(name: string): boolean {
  return name.startsWith('.');
}

export function isYaml(name: string): boolean {
  return ['.yaml', '.yml'].includes(extname(name));
}

/** There is nothing at a path, or what was on the way to it is no directory any more. */
export function isGone(error: unknown): boolean {
  return isSystemError(error, 'ENOENT') || isSystemError(error, 'ENOTDIR');
}

/** Another file, another size or another time of any change. */
export function fingerprintOf({ dev, ino, size, mtimeMs, ctimeMs }: Stats): string {
  return `${dev}:${ino}:${size}:${mtimeMs}:${ctimeMs}`;
}

/** Finds files at any depth. Throws when the directory itself cannot be read. */
export async function walk(directory: string): Promise<Walk> {
  const found: Walk = { files: [], directories: new Set(), failures: new Map(), hasLinks: false };
  const slices = new Slices();
  await walkDirectory(
    directory,
    realpathSync(directory),
    readdirSync(directory, { withFileTypes: true }),
    [],
    found,
    slices,
  );
  return found;
}

async function walkDirectory(
  directory: string,
  real: string,
  entries: readonly Dirent[],
  above: readonly string[],
  found: Walk,
  slices: Slices,
): Promise<void> {
  // A link to a directory above would be walked for ever.
  if (above.includes(real)) return;
  found.directories.add(directory);
  for (const entry of entries.toSorted((a, b) => compareText(a.name, b.name))) {
    if (isHidden(entry.name)) continue;
    await slices.rest();
    const path = join(directory, entry.name);
    if (entry.isSymbolicLink()) found.hasLinks = true;
    else if (!entry.isDirectory() && !isYaml(entry.name)) continue;
    try {
      const stats = statSync(path);
      if (stats.isDirectory()) {
        const below = readdirSync(path, { withFileTypes: true });
        await walkDirectory(path, realpathSync(path), below, [...above, real], found, slices);
      } else if (stats.isFile() && isYaml(entry.name)) found.files.push({ path, fingerprint: fingerprintOf(stats) });
    } catch (error) {
      // Gone meanwhile, or a link to nothing: as if it were not there.
      if (!isGone(error)) found.failures.set(path, error);
    }
  }
}

/** The order of a walk: by the names on the way, not by the letters of the path. */
export function compareWalked(a: string, b: string): number {
  if (a === b) return 0;
  const [namesOfA, namesOfB] = [a.split('/'), b.split('/')];
  for (let index = 0; index < namesOfA.length && index < namesOfB.length; index++) {
    const order = compareText(namesOfA[index]!, namesOfB[index]!);
    if (order !== 0) return order;
  }
  return namesOfA.length - namesOfB.length;
}
