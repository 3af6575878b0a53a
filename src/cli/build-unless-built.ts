import { join } from 'node:path';
import { isBuilt, recordBuild } from './build-stamp.ts';

const root = join(import.meta.dirname, '../..');
if (!isBuilt(root)) {
  await import('./build.ts');
  recordBuild(root);
}
