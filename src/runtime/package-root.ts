import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

let found: string | undefined;

/**
 * The folder of this package: where `machines/`, `package.json` and `node_modules/` of chartpilot are. The same answer
 * from the sources (`src/cli/*.ts`) and from the bundle (`dist/*.mjs`), from any working directory.
 *
 * @throws Error when the program was copied out of its package: a broken installation.
 */
export function packageRoot(): string {
  found ??= rootAbove(import.meta.dirname);
  return found;
}

let foundVersion: string | undefined;

/** Version of the package as it was at the first call: a later update or removal of its files does not change it. */
export function packageVersion(): string {
  foundVersion ??= (JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8')) as { version: string })
    .version;
  return foundVersion;
}

function rootAbove(start: string): string {
  for (let folder = start; ; folder = dirname(folder)) {
    const manifest = join(folder, 'package.json');
    if (existsSync(manifest) && nameIn(manifest) === 'chartpilot') return folder;
    if (dirname(folder) === folder) throw new Error(`no folder above ${start} contains the package.json of chartpilot`);
  }
}

function nameIn(manifest: string): unknown {
  return (JSON.parse(readFileSync(manifest, 'utf8')) as { name?: unknown }).name;
}
