import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

let cachedRoot: string | undefined;

/** The directory that contains `machines/`, `package.json` and `node_modules/`. @throws Error if the program was copied out of its package */
export function packageRoot(): string {
  cachedRoot ??= findPackageRoot(import.meta.dirname);
  return cachedRoot;
}

let cachedVersion: string | undefined;

/** Version of the package at the first call, because its files may be updated or removed later. */
export function packageVersion(): string {
  cachedVersion ??= (JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8')) as { version: string })
    .version;
  return cachedVersion;
}

function findPackageRoot(start: string): string {
  for (let folder = start; ; folder = dirname(folder)) {
    const manifest = join(folder, 'package.json');
    if (existsSync(manifest) && packageNameOf(manifest) === 'chartpilot') return folder;
    if (dirname(folder) === folder) throw new Error(`no folder above ${start} contains the package.json of chartpilot`);
  }
}

function packageNameOf(manifest: string): unknown {
  return (JSON.parse(readFileSync(manifest, 'utf8')) as { name?: unknown }).name;
}
