/** `npm run iptables`: installs iptables, nft and ip on this machine unless they are present. */
import { explainError } from '../../src/runtime/errors.ts';
import { installPackages } from './install-packages.ts';
import { findIptables, installIptables } from './iptables.ts';

try {
  const iptablesPath = findIptables(process.env);
  if (iptablesPath !== undefined) console.error(`iptables is there: ${iptablesPath}`);
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
