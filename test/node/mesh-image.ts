/** The image of agent and control plane for tests on a node, from the files of this machine: programs, the libraries they load, and `dist/`. */
import {
  copyFileSync,
  cpSync,
  linkSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { execa } from 'execa';
import { isSystemError } from '../../src/runtime/errors.ts';
import { findInPath } from '../../src/runtime/files/executable.ts';
import { packageRoot } from '../../src/runtime/package-root.ts';
import type { Image } from './image.ts';

export const meshImage = 'localhost/chartpilot:test';

/** Programs that the launchers in `bin/` call. */
const tools = ['readlink', 'dirname', 'sed', 'sleep', 'cat', 'ls', 'id', 'env'];
const variants = ['', '-restore', '-save'];

/** Builds `dist/` first if sources are newer. @param folder gets the image's files */
export async function stageMeshImage(folder: string, envoy: string): Promise<Image> {
  await execa(process.execPath, [join(packageRoot(), 'src/cli/build-unless-built.ts')], { cwd: packageRoot() });
  const root = join(folder, 'mesh');
  const at = (path: string): string => join(root, path);
  const made = [
    'bin',
    'etc/istio/proxy',
    'var/lib/istio/data',
    'usr/local/bin',
    'usr/sbin',
    'opt/chartpilot',
    'tmp',
    'run',
  ];
  for (const path of made) mkdirSync(at(path), { recursive: true });
  const iptables = realpathSync(findInPath('xtables-nft-multi', process.env)!);
  const programs: readonly (readonly [string, string])[] = [
    [realpathSync(findInPath('dash', process.env)!), 'bin/sh'],
    [realpathSync(findInPath('busybox', process.env)!), 'bin/busybox'],
    [iptables, 'usr/sbin/xtables-nft-multi'],
    [realpathSync(process.execPath), 'usr/local/bin/node'],
    [realpathSync(envoy), 'usr/local/bin/envoy'],
  ];
  for (const [from, to] of programs) add(from, at(to));
  const libraries = await librariesOf(programs.map(([from]) => from));
  for (const library of libraries) add(realpathSync(library), at(library));
  const xtables = libraries.find((library) => basename(library).startsWith('libxtables.'))!;
  // Matches and targets, which iptables loads by name.
  const extensions = join(dirname(realpathSync(xtables)), 'xtables');
  for (const name of readdirSync(extensions)) add(realpathSync(join(extensions, name)), at(join(extensions, name)));
  for (const tool of tools) symlinkSync('busybox', at(`bin/${tool}`));
  for (const family of ['iptables', 'ip6tables']) {
    for (const variant of variants) symlinkSync('xtables-nft-multi', at(`usr/sbin/${family}${variant}`));
  }
  writeFileSync(at('etc/passwd'), 'root:x:0:0::/:/bin/sh\nistio-proxy:x:1337:1337::/:/bin/sh\n');
  writeFileSync(at('etc/group'), 'root:x:0:\nistio-proxy:x:1337:\n');
  for (const path of ['bin', 'dist', 'package.json']) {
    const filter = (file: string): boolean => !file.endsWith('.map') && basename(file) !== 'compile-cache';
    cpSync(join(packageRoot(), path), at(`opt/chartpilot/${path}`), { recursive: true, filter });
  }
  for (const name of ['pilot-agent', 'pilot-discovery']) {
    symlinkSync(`/opt/chartpilot/bin/${name}`, at(`usr/local/bin/${name}`));
  }
  await execa('chmod', ['777', ...['tmp', 'etc/istio/proxy', 'var/lib/istio/data'].map(at)]);
  return { name: meshImage, root, entrypoint: ['/usr/local/bin/pilot-agent'], user: '1337:1337' };
}

/** A link where both are on one disk: 240 MB are not copied. */
function add(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true });
  try {
    linkSync(from, to);
  } catch (error) {
    if (isSystemError(error, 'EXDEV')) copyFileSync(from, to);
    else if (!isSystemError(error, 'EEXIST')) throw error;
  }
}

/** Paths of the dynamic loader and of all libraries. */
async function librariesOf(programs: readonly string[]): Promise<string[]> {
  const outputs = await Promise.all(programs.map((program) => execa('ldd', [program], { reject: false })));
  return [...new Set(outputs.flatMap(({ stdout }) => stdout.match(/\/\S*\.so\S*/g) ?? []))];
}
