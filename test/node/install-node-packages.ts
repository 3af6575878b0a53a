/** `npm run node-packages`: installs containerd, runc, CNI plugins and conntrack on this machine unless they are present. */
import { explainError } from '../../src/runtime/errors.ts';
import { installPackages } from '../harness/install-packages.ts';
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
} catch (error) {
  console.error(explainError(error));
  process.exitCode = 1;
}
