import { join } from 'node:path';
import { packageRoot } from '../../runtime/package-root.ts';

const folders: Readonly<Record<string, string>> = {
  'pilot-agent': 'machines/agent/sequences',
  'pilot-discovery': 'machines/discovery/sequences',
};

/** @returns `undefined` for a program of another package */
export function bundledDiagrams(program: string): string | undefined {
  const folder = Object.hasOwn(folders, program) ? folders[program] : undefined;
  return folder === undefined ? undefined : join(packageRoot(), folder);
}
