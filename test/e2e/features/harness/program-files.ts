/** Which files the programs under test are run from. */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../../../src/runtime/package-root.ts';

export interface Command {
  readonly executable: string;
  readonly args: readonly string[];
}

/**
 * The built `pilot-discovery`, as people run it; from its sources when one of them is newer than what was built. The
 * environment variable `FEATURES_PILOT` names another program's entry file: another version, to compare with.
 */
export function pilotDiscovery(): Command {
  const other = process.env.FEATURES_PILOT;
  if (other) return { executable: process.execPath, args: [other] };
  const root = packageRoot();
  const built = statSync(join(root, 'dist/pilot-discovery.mjs'), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const isCurrent = ['src', 'machines'].every((folder) => newestIn(join(root, folder)) <= built);
  if (isCurrent) return { executable: join(root, 'bin/pilot-discovery'), args: [] };
  return { executable: process.execPath, args: [join(root, 'src/cli/pilot-discovery.ts')] };
}

function newestIn(folder: string): number {
  let newest = 0;
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true })) {
    if (!entry.isFile() || !entry.name.endsWith('.ts') || entry.name.endsWith('.test.ts')) continue;
    newest = Math.max(newest, statSync(join(entry.parentPath, entry.name)).mtimeMs);
  }
  return newest;
}
