import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { architectures } from './architecture.ts';
import { type BaseLayers, LayerCache, type LayerInputs } from './layer-cache.ts';
import { OciLayout } from './oci-layout.ts';

const [architecture, arm64] = architectures as [(typeof architectures)[number], (typeof architectures)[number]];
const inputs: LayerInputs = { architecture, compression: 'none', timeS: 1_000, checkout: packageRoot() };

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'chartpilot-cache-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

async function filledLayout(): Promise<{ layout: OciLayout; layers: BaseLayers }> {
  const layout = new OciLayout(folder(), 1_000, 'none');
  const add = async (name: string) => {
    const root = join(folder(), name);
    mkdirSync(root);
    writeFileSync(join(root, name), name);
    return { layer: await layout.addLayer(root), components: [] };
  };
  return { layout, layers: { debian: await add('debian'), node: await add('node'), envoy: await add('envoy') } };
}

test('a layer cache returns the layers of an earlier build with equal inputs and adds their files to the layout', async () => {
  const cache = folder();
  const { layout, layers } = await filledLayout();
  new LayerCache(cache, inputs).write(layers, layout.blobs);
  // Simulates the second of two concurrent builds.
  new LayerCache(cache, inputs).write(layers, layout.blobs);
  const other = new OciLayout(folder(), 1_000, 'none');
  expect(new LayerCache(cache, inputs).read(other.blobs)).toEqual(layers);
  for (const { layer } of Object.values(layers)) {
    const file = layer.digest.slice('sha256:'.length);
    expect(readFileSync(join(other.blobs, file))).toEqual(readFileSync(join(layout.blobs, file)));
  }
});

test.each([
  ['a different architecture', { architecture: arm64 }],
  ['a different compression', { compression: 'gzip' }],
  ['a different time', { timeS: 2_000 }],
] as const)('a layer cache has no entry for %s', async (_, changed) => {
  const cache = folder();
  const { layout, layers } = await filledLayout();
  new LayerCache(cache, inputs).write(layers, layout.blobs);
  expect(new LayerCache(cache, { ...inputs, ...changed }).read(folder())).toBeUndefined();
});
