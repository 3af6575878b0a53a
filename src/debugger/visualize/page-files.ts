import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ChartpilotError } from '../../runtime/errors.ts';
import { packageRoot } from '../../runtime/package-root.ts';

export interface PageFiles {
  readonly 'index.html': string;
  readonly 'page.js': string;
  readonly 'page.css': string;
}

/** @throws ChartpilotError FILE_UNREADABLE if the page was not built */
export function readPageFiles(folder = join(packageRoot(), 'dist/visualize')): PageFiles {
  const read = (name: keyof PageFiles): string => {
    try {
      return readFileSync(join(folder, name), 'utf8');
    } catch (error) {
      throw new ChartpilotError('FILE_UNREADABLE', `${join(folder, name)}: missing file of the page`, {
        hint: `run npm run build in ${packageRoot()}`,
        cause: error,
      });
    }
  };
  return { 'index.html': read('index.html'), 'page.js': read('page.js'), 'page.css': read('page.css') };
}
