/** The iptables of this machine, for tests of the redirection. */
import { delimiter, join } from 'node:path';
import { ChartpilotError } from '../../src/runtime/errors.ts';
import { isExecutable } from '../../src/runtime/files/executable.ts';

const programs = [
  'iptables-restore',
  'ip6tables-restore',
  'iptables-save',
  'nft',
  'ip',
  'nsenter',
  'unshare',
  'setpriv',
];

export const installIptables =
  'sudo apt-get update && sudo apt-get install -y --no-install-recommends iptables nftables iproute2';

/** Path of iptables; `undefined` unless everything that the tests need is installed. */
export function findIptables({ PATH = '' }: NodeJS.ProcessEnv): string | undefined {
  const pathFolders = PATH.split(delimiter).filter((folder) => folder !== '');
  const programPaths = programs.map((name) => pathFolders.map((folder) => join(folder, name)).find(isExecutable));
  return programPaths.includes(undefined) ? undefined : programPaths[0];
}

/** Makes tests fail instead of being skipped if iptables or the permission to use it is missing. */
export function requireIptables(env: NodeJS.ProcessEnv = process.env): void {
  if (process.getuid?.() !== 0) {
    throw new ChartpilotError('IPTABLES_FAILED', 'network namespaces are made by root alone', {
      hint: 'Run it as root.',
    });
  }
  if (findIptables(env) !== undefined) return;
  throw new ChartpilotError('FILE_UNREADABLE', `one of ${programs.join(', ')} is not in PATH`, {
    hint: `Run: npm run iptables (or: ${installIptables})`,
  });
}
