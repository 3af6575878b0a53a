import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Metafile } from 'esbuild';

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly license?: string;
  readonly homepage?: string;
  readonly repository?: string | { readonly url: string };
}

/** Packages in `dist/` that are not inputs of a bundle. */
const copiedPackages = ['re2js', '@grpc/grpc-js-xds'];

/** Additional remarks, and replacements for missing license files. */
const licenseRemarks: Readonly<Record<string, string>> = {
  elkjs:
    'It is used unchanged and under the Eclipse Public License 2.0, in dist/elk.bundled-*.mjs. Its source code is ' +
    'available under that licence from the address above, at the version named.',
  '@grpc/grpc-js-xds':
    'Types and descriptors are generated from the .proto files in it: of Envoy, xDS, googleapis and protoc-gen-validate, ' +
    'each under the Apache License 2.0, which is in the file LICENSE of this package. No code of it is in here.',
  '@bufbuild/protobuf':
    'The Apache License 2.0 is in the file LICENSE of this package. Of Google Inc. is the code that reads and writes ' +
    'variable-length integers.',
};

/** Licenses at the top of a source file, by package. */
const licenseSourceFiles: Readonly<Record<string, string>> = { '@bufbuild/protobuf': 'dist/esm/wire/varint.js' };

/**
 * Text of `dist/THIRD-PARTY.txt`.
 * @throws Error if a bundled package has neither a license file nor a remark above
 */
export function thirdPartyNotices(root: string, metafiles: readonly Metafile[]): string {
  const folders = new Set(copiedPackages.map((name) => `node_modules/${name}`));
  for (const { inputs } of metafiles) {
    for (const input of Object.keys(inputs)) {
      const folder = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input)?.[0];
      if (folder !== undefined) folders.add(folder);
    }
  }
  const notices = [...folders].map((folder) => noticeOf(join(root, folder)));
  return [
    'chartpilot is under the Apache License 2.0 (LICENSE). The programs in dist/ contain code of these packages.\n',
    ...[...new Set(notices)].sort(),
  ].join(`\n${'-'.repeat(80)}\n\n`);
}

function noticeOf(folder: string): string {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;
  const { name, version, license } = manifest;
  const texts = readdirSync(folder)
    .filter((file) => /^(licen[cs]e|copying|notice)/i.test(file))
    .sort()
    .map((file) => readFileSync(join(folder, file), 'utf8').trim());
  const source = licenseSourceFiles[name];
  if (source !== undefined) texts.push(leadingCommentOf(readFileSync(join(folder, source), 'utf8')));
  if (texts.length === 0 && licenseRemarks[name] === undefined) {
    throw new Error(`${folder} has no licence file: add a remark in ${import.meta.filename}`);
  }
  const paragraphs = [
    `${name} ${version}\n${license ?? 'see below'}\n${addressOf(manifest)}`,
    licenseRemarks[name],
    ...texts,
  ];
  return `${paragraphs.filter((paragraph) => paragraph !== undefined).join('\n\n')}\n`;
}

function addressOf({ name, homepage, repository }: Manifest): string {
  const url = typeof repository === 'string' ? repository : repository?.url;
  // npm reads `owner/name` as a GitHub repository.
  return (homepage ?? url ?? `the npm package ${name}`)
    .replace(/^git\+/, '')
    .replace(/^[\w.-]+\/[\w.-]+$/, 'https://github.com/$&');
}

function leadingCommentOf(text: string): string {
  const lines = text.split('\n');
  const firstCodeLineIndex = lines.findIndex((line) => !line.startsWith('//'));
  return lines
    .slice(0, firstCodeLineIndex)
    .map((line) => line.replace(/^\/\/ ?/, ''))
    .join('\n');
}
