/** `npm run iptables`: installs iptables, nft and ip on this machine unless they are present. */
import { explainError } from '../../src/runtime/errors.ts';
import { installPackages } from './install-packages.ts';
import { findIptables, installIptables } from './iptables.ts';

try {
  const found = findIptables(process.env);
  if (found !== undefined) console.error(`iptables is there: ${found}`);
  else {
    installPackages({
      name: 'iptables',
      packages: ['iptables', 'nftables', 'iproute2'],
      hint: `Run: ${installIptables}`,
      find: () => findIptables(process.env),
    });
  }
} catch (error) {
  console.error(explainError(error));
  process.exitCode = 1;
}
