/** Finds programs of the image whose shared libraries are missing. */
import { closeSync, lstatSync, openSync, readdirSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { ChartpilotError } from '../../src/runtime/errors.ts';
import type { Architecture } from './architecture.ts';
import { runTool } from './run-tool.ts';

/**
 * @param roots folders of all layers of an image
 * @throws ChartpilotError REQUEST_FAILED with each missing library
 */
export function requireLibraries(roots: readonly string[], { triplet }: Architecture): void {
  const files = roots.flatMap((root) =>
    readdirSync(root, { recursive: true, encoding: 'utf8' }).map((path) => join(root, path)),
  );
  const present = new Set(files.map((path) => path.slice(path.lastIndexOf('/') + 1)));
  const output = runTool(`${triplet}-readelf`, ['--dynamic', '--wide', ...files.filter(isElf)]);
  const needed = [...output.matchAll(/\(NEEDED\).*\[(.*)\]/g)].map(([, library = '']) => library);
  const missing = [...new Set(needed)].filter((library) => !present.has(library)).sort();
  if (missing.length === 0) return;
  throw new ChartpilotError('REQUEST_FAILED', `libraries missing in the image: ${missing.join(', ')}`, {
    hint: 'Add their Debian packages to the list in deploy/image/debian-layer.ts.',
  });
}

function isElf(path: string): boolean {
  if (!lstatSync(path).isFile()) return false;
  const head = Buffer.alloc(4);
  const file = openSync(path, 'r');
  readSync(file, head, 0, 4, 0);
  closeSync(file);
  return head.toString('latin1') === '\x7fELF';
}
