/** `npm run iptables`: sees to it that there are iptables and ip on this machine. */
import { explainError } from '../../src/runtime/errors.ts';
import { installPackages } from './install-packages.ts';
import { findIptables, installIptables } from './iptables.ts';

try {
  const found = findIptables(process.env);
  if (found !== undefined) console.error(`iptables is there: ${found}`);
  else {
    installPackages({
      name: 'iptables',
      packages: ['iptables', 'iproute2'],
      hint: `Run: ${installIptables}`,
      find: () => findIptables(process.env),
    });
  }
} catch (error) {
  console.error(explainError(error));
  process.exitCode = 1;
}
