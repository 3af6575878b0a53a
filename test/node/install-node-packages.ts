/**
 * `npm run node-packages`: installs containerd, runc, CNI plugins and conntrack on this machine unless they are present, and fills the cache
 * of image layers.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { explainError } from '../../src/runtime/errors.ts';
import { installPackages } from '../harness/install-packages.ts';
import { buildMeshImages } from './mesh-image.ts';
import { cniFolder, installNodePackages, missingNodePrograms, nodePackages } from './node-packages.ts';

const find = (): string | undefined => (missingNodePrograms(process.env).length === 0 ? cniFolder : undefined);

try {
  if (find() !== undefined) console.error('The packages of the node are installed');
  else {
    installPackages({
      ...{ name: 'the container runtime', packages: nodePackages, find },
      hint: `Run: ${installNodePackages}`,
    });
  }
  // Fills the cache once, before parallel tests need it.
  const output = mkdtempSync(join(tmpdir(), 'chartpilot-images-'));
  await buildMeshImages(output).finally(() => rmSync(output, { recursive: true, force: true }));
} catch (error) {
  console.error(explainError(error));
  process.exitCode = 1;
}
