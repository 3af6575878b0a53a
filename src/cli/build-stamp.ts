/** Checks whether `dist/` is up to date, to avoid a second build (7 s of CPU time) after `npm ci`. */
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

/** The second lock file represents the installed packages. */
const buildInputs = [
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
  return { node: process.version, sources: digestOf(root, buildInputs), built: digestOf(root, ['dist']) };
}

/** Called after a build of `dist/`. */
export function recordBuild(root: string): void {
  mkdirSync(dirname(stampFile(root)), { recursive: true });
  writeFileSync(stampFile(root), JSON.stringify(stampOf(root)));
}

export function isBuilt(root: string): boolean {
  try {
    if (readFileSync(stampFile(root), 'utf8') !== JSON.stringify(stampOf(root))) return false;
  } catch {
    return false;
  }
  // Some callers compare modification times.
  const now = new Date();
  for (const name of ['pilot-agent.mjs', 'THIRD-PARTY.txt']) utimesSync(join(root, 'dist', name), now, now);
  return true;
}

function digestOf(root: string, paths: readonly string[]): string {
  const digest = createHash('sha256');
  for (const file of paths.flatMap((path) => filesAt(join(root, path)))) {
    const content = readFileSync(file);
    digest.update(`${relative(root, file)}\0${content.length}\0`).update(content);
  }
  return digest.digest('hex');
}

function filesAt(path: string): string[] {
  try {
    return readdirSync(path, { withFileTypes: true, recursive: true })
      .filter((entry) => entry.isFile() && !entry.parentPath.includes('compile-cache'))
      .map((entry) => join(entry.parentPath, entry.name))
      .sort();
  } catch {
    return [path];
  }
}
