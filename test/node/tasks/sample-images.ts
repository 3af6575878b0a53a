/** The images named in Istio's sample manifests, with the servers of `programs/`: one layer with Node, curl and busybox, under all names. */
import { copyFileSync, mkdirSync, readdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { findExecutable } from '../../../src/runtime/files/executable.ts';
import { packageRoot } from '../../../src/runtime/package-root.ts';
import type { Image, ImageConfiguration } from '../image.ts';
import { addPrograms } from './image-files.ts';

const hub = 'registry.istio.io/release';
const node = '/usr/local/bin/node';
export const programs = join(packageRoot(), 'test/node/tasks/programs');

const bookinfo = (service: string, version: string): ImageConfiguration => ({
  name: `${hub}/examples-bookinfo-${service}-${version}:1.20.3`,
  entrypoint: [node, '/programs/bookinfo.ts', service, version],
  user: '1000:1000',
});

const helloworld = (version: string): ImageConfiguration => ({
  name: `${hub}/examples-helloworld-${version}:1.0`,
  entrypoint: [node, '/programs/helloworld.ts', version],
  user: '0:0',
});

export const httpbinImage = 'docker.io/mccutchen/go-httpbin:v2.15.0';
export const curlImage = 'docker.io/curlimages/curl:8.16.0';

const images: readonly ImageConfiguration[] = [
  ...['productpage', 'details', 'ratings'].map((service) => bookinfo(service, 'v1')),
  ...['v1', 'v2', 'v3'].map((version) => bookinfo('reviews', version)),
  ...['v1', 'v2'].map(helloworld),
  { name: httpbinImage, entrypoint: [node, '/programs/httpbin.ts'], user: '65532:65532' },
];

const tools = ['sh', 'sleep', 'cat', 'ls', 'id', 'env', 'seq', 'nslookup'];

/** @param folder folder for the files */
export async function stageSampleImages(folder: string): Promise<Image> {
  const root = join(folder, 'samples');
  const at = (path: string): string => join(root, path);
  for (const path of ['bin', 'etc', 'programs', 'tmp', 'usr/local/bin']) mkdirSync(at(path), { recursive: true });
  const find = (name: string): string => realpathSync(findExecutable(name, process.env)!);
  await addPrograms(root, [
    [find('busybox'), 'bin/busybox'],
    [find('curl'), 'usr/bin/curl'],
    [realpathSync(process.execPath), node.slice(1)],
  ]);
  for (const tool of tools) symlinkSync('busybox', at(`bin/${tool}`));
  for (const name of readdirSync(programs)) copyFileSync(join(programs, name), at(`programs/${name}`));
  // Makes Node read `.ts` files as modules.
  writeFileSync(at('programs/package.json'), '{ "type": "module" }');
  writeFileSync(at('etc/passwd'), 'root:x:0:0::/:/bin/sh\ncurl_user:x:100:101::/tmp:/bin/sh\n');
  await execa('chmod', ['777', at('tmp')]);
  const curl = { name: curlImage, entrypoint: ['/usr/bin/curl'], user: '100:101' };
  return { ...curl, root, otherImages: images };
}
