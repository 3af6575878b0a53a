/** Files of this machine in the root folder of an image. */
import { copyFileSync, linkSync, mkdirSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { execa } from 'execa';
import { isSystemError } from '../../../src/runtime/errors.ts';

/**
 * Adds programs and the libraries that they load.
 * @param programs pairs of the path on this machine and in the image, without a leading slash
 * @returns paths of the libraries
 */
export async function addPrograms(root: string, programs: readonly (readonly [string, string])[]): Promise<string[]> {
  for (const [from, to] of programs) addFile(from, join(root, to));
  const libraries = await librariesOf(programs.map(([from]) => from));
  for (const library of libraries) addFile(realpathSync(library), join(root, library));
  return libraries;
}

/** Adds a hard link on the same file system, so that 240 MB are not copied. */
export function addFile(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true });
  try {
    linkSync(from, to);
  } catch (error) {
    if (isSystemError(error, 'EXDEV')) copyFileSync(from, to);
    else if (!isSystemError(error, 'EEXIST')) throw error;
  }
}

/** Paths of the dynamic loader and of all libraries. */
async function librariesOf(programs: readonly string[]): Promise<string[]> {
  const outputs = await Promise.all(programs.map((program) => execa('ldd', [program], { reject: false })));
  return [...new Set(outputs.flatMap(({ stdout }) => stdout.match(/\/\S*\.so\S*/g) ?? []))];
}
