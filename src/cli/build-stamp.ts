/** Whether `dist/` is what a build would make again: a build takes seven seconds of a processor, and `npm ci` has just had one. */
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

/** All that bundles, pictures and notices are made of. Packages are those that the second lock file says are installed. */
const madeOf = [
  'src',
  'machines',
  'visualize',
  'bin',
  'package.json',
  'package-lock.json',
  'node_modules/.package-lock.json',
];

interface Stamp {
  readonly node: string;
  readonly sources: string;
  readonly built: string;
}

const stampFile = (root: string): string => join(root, 'node_modules/.cache/chartpilot/build.json');

function stampOf(root: string): Stamp {
  return { node: process.version, sources: digestOf(root, madeOf), built: digestOf(root, ['dist']) };
}

/** Notes that `dist/` was built just now. */
export function noteBuild(root: string): void {
  mkdirSync(dirname(stampFile(root)), { recursive: true });
  writeFileSync(stampFile(root), JSON.stringify(stampOf(root)));
}

/** Whether nothing has changed since the last build, neither what it is made of nor what it made. */
export function isBuilt(root: string): boolean {
  try {
    if (readFileSync(stampFile(root), 'utf8') !== JSON.stringify(stampOf(root))) return false;
  } catch {
    return false;
  }
  // What asks whether a source is newer than the programs gets the answer of their contents.
  const now = new Date();
  for (const name of ['pilot-agent.mjs', 'THIRD-PARTY.txt']) utimesSync(join(root, 'dist', name), now, now);
  return true;
}

/** Of the names and contents of files and of all below folders, but for what Node keeps of what it has compiled. */
function digestOf(root: string, places: readonly string[]): string {
  const digest = createHash('sha256');
  for (const file of places.flatMap((place) => filesAt(join(root, place)))) {
    const content = readFileSync(file);
    digest.update(`${relative(root, file)}\0${content.length}\0`).update(content);
  }
  return digest.digest('hex');
}

function filesAt(place: string): string[] {
  try {
    return readdirSync(place, { withFileTypes: true, recursive: true })
      .filter((entry) => entry.isFile() && !entry.parentPath.includes('compile-cache'))
      .map((entry) => join(entry.parentPath, entry.name))
      .sort();
  } catch {
    return [place];
  }
}
