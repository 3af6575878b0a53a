import { createHash } from 'node:crypto';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect, onTestFinished, test } from 'vitest';
import { images } from './images.ts';
import { type Descriptor, OciLayout } from './oci-layout.ts';
import { runTool } from './run-tool.ts';

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'chartpilot-layout-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** Creates files in this order with this modification time. */
function content(files: Readonly<Record<string, string>>, timeS: number): string {
  const root = folder();
  for (const [name, text] of Object.entries(files)) {
    const path = join(root, name);
    mkdirSync(join(path, '..'), { recursive: true });
    writeFileSync(path, text);
    utimesSync(path, timeS, timeS);
  }
  symlinkSync('/a/one', join(root, 'link'));
  mkdirSync(join(root, 'tmp'));
  chmodSync(join(root, 'tmp'), 0o1777);
  return root;
}

const files = { 'a/one': '1', 'b/two': '2', c: '3' };
const reversed = Object.fromEntries(Object.entries(files).reverse());

async function layoutOf(root: string, timeS?: number): Promise<string> {
  const path = folder();
  const layout = new OciLayout(path, timeS);
  const layers = [await layout.addLayer(root)];
  const [{ tag, config }] = images as [(typeof images)[number]];
  layout.addImage({ name: 'localhost/test/agent:1', tag, architecture: 'amd64', layers, config, labels: {} });
  layout.finish();
  return path;
}

const indexOf = (layout: string): string => readFileSync(join(layout, 'index.json'), 'utf8');

test('equal files produce equal layouts regardless of order and modification time', async () => {
  const [one, other] = [await layoutOf(content(files, 1_000)), await layoutOf(content(reversed, 2_000_000_000))];
  expect(indexOf(one)).toBe(indexOf(other));
});

test.each([
  ['different content', { ...files, c: '4' }, undefined],
  ['a different name', { 'a/one': '1', 'b/two': '2', d: '3' }, undefined],
  ['a different SOURCE_DATE_EPOCH', files, 1_700_000_000],
])('%s produces a different layout', async (_, changed, timeS) => {
  const [one, other] = [await layoutOf(content(files, 1_000)), await layoutOf(content(changed, 1_000), timeS)];
  expect(indexOf(one)).not.toBe(indexOf(other));
});

test('files in a layer belong to root, keep their modes and get the timestamp of the image', async () => {
  const layout = await layoutOf(content(files, 1_000));
  const { layers } = JSON.parse(readBlob(layout, manifestOf(layout)).toString()) as { layers: [Descriptor] };
  const archive = join(folder(), 'layer.tar');
  writeFileSync(archive, gunzipSync(readBlob(layout, layers[0])));
  const listed = runTool('tar', ['-tv', '--utc', '--numeric-owner', '-f', archive]).trim().split('\n');
  expect(listed.map((line) => line.replaceAll(/ +/g, ' '))).toEqual([
    expect.stringMatching(/^d\S+ 0\/0 0 1980-01-01 00:00 \.\/$/),
    'drwxr-xr-x 0/0 0 1980-01-01 00:00 ./a/',
    '-rw-r--r-- 0/0 1 1980-01-01 00:00 ./a/one',
    'drwxr-xr-x 0/0 0 1980-01-01 00:00 ./b/',
    '-rw-r--r-- 0/0 1 1980-01-01 00:00 ./b/two',
    '-rw-r--r-- 0/0 1 1980-01-01 00:00 ./c',
    'lrwxrwxrwx 0/0 0 1980-01-01 00:00 ./link -> /a/one',
    'drwxrwxrwt 0/0 0 1980-01-01 00:00 ./tmp/',
  ]);
});

function manifestOf(layout: string): Descriptor {
  return (JSON.parse(indexOf(layout)) as { manifests: [Descriptor] }).manifests[0];
}

function readBlob(layout: string, { digest, size }: Descriptor): Buffer {
  const bytes = readFileSync(join(layout, 'blobs', digest.replace(':', '/')));
  expect({ digest: `sha256:${createHash('sha256').update(bytes).digest('hex')}`, size: bytes.length }).toEqual({
    digest,
    size,
  });
  return bytes;
}

test('the index references every blob of the layout, and the image configuration contains the digests of the uncompressed layers', async () => {
  const layout = await layoutOf(content(files, 1_000));
  const manifest = JSON.parse(readBlob(layout, manifestOf(layout)).toString()) as {
    config: Descriptor;
    layers: Descriptor[];
  };
  const config = JSON.parse(readBlob(layout, manifest.config).toString());
  const layers = manifest.layers.map((layer) => gunzipSync(readBlob(layout, layer)));
  expect(config.rootfs.diff_ids).toEqual(
    layers.map((bytes) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`),
  );
  expect(config).toMatchObject({ os: 'linux', architecture: 'amd64', config: { User: '1337:1337' } });
  const known = [manifestOf(layout), manifest.config, ...manifest.layers].map(({ digest }) => digest.slice(7));
  expect(readdirSync(join(layout, 'blobs/sha256')).sort()).toEqual(known.sort());
  expect(readdirSync(layout).sort()).toEqual(['blobs', 'index.json', 'oci-layout']);
});
