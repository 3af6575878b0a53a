/** Debian programs that a node needs in addition to the one that this repository builds. */
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { ChartpilotError } from '../../src/runtime/errors.ts';
import { isExecutable } from '../../src/runtime/files/executable.ts';

const programs = [
  ...['containerd', 'containerd-shim-runc-v2', 'ctr', 'runc', 'conntrack', 'busybox'],
  ...['iptables-restore', 'ip', 'nsenter', 'unshare', 'tar'],
  // To build the images.
  ...['strip', 'readelf', 'python3'],
  // Client used by the documented tasks.
  'curl',
];

/** Folder of the CNI plugins. */
export const cniFolder = '/usr/lib/cni';
const plugins = ['bridge', 'host-local', 'loopback'];

export const nodePackages = [
  ...['containerd', 'runc', 'containernetworking-plugins', 'conntrack', 'busybox-static'],
  ...['iptables', 'iproute2', 'binutils', 'python3-pip', 'curl'],
];

/** The command that installs them. */
export const installNodePackages = `sudo apt-get update && sudo apt-get install -y --no-install-recommends ${nodePackages.join(' ')}`;

/** Paths of missing programs; empty if the node can run. */
export function missingNodePrograms({ PATH = '' }: NodeJS.ProcessEnv): string[] {
  const folders = PATH.split(delimiter).filter((folder) => folder !== '');
  return [
    ...programs.filter((name) => !folders.some((folder) => isExecutable(join(folder, name)))),
    ...plugins.map((name) => join(cniFolder, name)).filter((path) => !existsSync(path)),
  ];
}

/**
 * Makes a test fail instead of being skipped.
 * @throws ChartpilotError if a program is missing or this process is not root
 */
export function requireNodePackages(env: NodeJS.ProcessEnv = process.env): void {
  if (process.getuid?.() !== 0) {
    throw new ChartpilotError('FILE_UNREADABLE', 'a node needs namespaces and cgroups, which only root can create', {
      hint: 'Run the tests as root.',
    });
  }
  const missingPrograms = missingNodePrograms(env);
  if (missingPrograms.length === 0) return;
  throw new ChartpilotError('FILE_UNREADABLE', `programs of the node are missing: ${missingPrograms.join(', ')}`, {
    hint: `Run: npm run node-packages (or: ${installNodePackages})`,
  });
}
