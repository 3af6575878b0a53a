/** Files of the programs under test. */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../src/runtime/package-root.ts';

export interface Command {
  readonly executable: string;
  readonly args: readonly string[];
}

type ProgramName = 'pilot-agent' | 'pilot-discovery' | 'chartpilot';

/** Node's arguments to run a program: the bundle, which starts in a third of the processor time, or the sources if one of them is newer. */
export function programFile(program: ProgramName, root = packageRoot()): string {
  return isCurrent(root) ? join(root, `dist/${program}.mjs`) : join(root, `src/cli/${program}.ts`);
}

/**
 * Command of `pilot-discovery` as installed, by its wrapper, unless its sources are newer. The environment variable `FEATURES_PILOT` names another
 * version's entry file, for comparisons.
 */
export function pilotDiscovery(): Command {
  const other = process.env.FEATURES_PILOT;
  if (other) return { executable: process.execPath, args: [other] };
  const root = packageRoot();
  if (isCurrent(root)) return { executable: join(root, 'bin/pilot-discovery'), args: [] };
  return { executable: process.execPath, args: [join(root, 'src/cli/pilot-discovery.ts')] };
}

const current = new Map<string, boolean>();

/** Determined once per process, because a build during a run removes the files of that run. */
function isCurrent(root: string): boolean {
  let isUpToDate = current.get(root);
  if (isUpToDate === undefined) {
    const sources = ['src', 'machines'].flatMap((folder) => filesIn(join(root, folder)));
    // A build writes the program first and the notices last, so an incomplete build does not count.
    const built = timeOf(join(root, 'dist/THIRD-PARTY.txt')) && timeOf(join(root, 'dist/pilot-agent.mjs'));
    isUpToDate = built > 0 && [...sources, join(root, 'package-lock.json')].every((file) => timeOf(file) <= built);
    current.set(root, isUpToDate);
  }
  return isUpToDate;
}

const timeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;

/** Sources of a build, except tests and files that are read unchanged. */
function filesIn(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && !/\.(test\.ts|mmd|md)$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name));
}
