/**
 * Generates src/gen from Envoy's v3 API and our own .proto files. Works offline after npm has installed its packages.
 *
 * The .proto files come from the npm package @grpc/grpc-js-xds. Only the import closure of roots.txt is copied to a
 * work folder, because the bundle also contains v2 files that do not resolve. `envoy-api.binpb` contains descriptors of
 * the whole v3 API, because an EnvoyFilter may contain any type.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fromBinary, isMessage, type Message, toBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { outlineOf } from './outline.ts';

const here = import.meta.dirname;
const root = dirname(here);
const bundle = join(root, 'node_modules/@grpc/grpc-js-xds/deps');
const sources = [
  here,
  join(bundle, 'envoy-api'),
  join(bundle, 'xds'),
  join(bundle, 'googleapis'),
  join(bundle, 'protoc-gen-validate'),
];
const work = join(here, '.work');
const out = join(root, 'src/gen');

/** Finds a .proto file by its import path in the first source folder that contains it. */
function locate(importPath: string): string | undefined {
  return sources.map((dir) => join(dir, importPath)).find((path) => existsSync(path));
}

/** The roots and all their imports: import path → text. Google's well-known types come with buf. */
function importClosure(roots: readonly string[]): Map<string, string> {
  const found = new Map<string, string>();
  const todo = [...roots];
  for (let path = todo.pop(); path !== undefined; path = todo.pop()) {
    if (found.has(path) || path.startsWith('google/protobuf/')) continue;
    const file = locate(path);
    if (file === undefined)
      throw new Error(`proto/generate: ${path} is imported but in none of: ${sources.join(', ')}`);
    const text = withNewerFields(path, readFileSync(file, 'utf8'));
    found.set(path, text);
    for (const match of text.matchAll(/^\s*import\s+(?:public\s+|weak\s+)?"([^"]+)"/gm)) todo.push(match[1]!);
  }
  return found;
}

/**
 * Adds fields that are newer than the bundle. Without SourcedMetadata Envoy 1.40 warns, because it replaces the
 * deprecated `metadata` of permissions and principals (envoy.config.rbac.v3). A custom tag's `value` is a format string
 * since 1.37.
 */
function withNewerFields(path: string, text: string): string {
  if (path === 'envoy/type/tracing/v3/custom_tag.proto' && !text.includes('string value = 6')) {
    return text.replace(/^ *Metadata metadata = 5;$/m, '$&\n    string value = 6;');
  }
  if (path !== 'envoy/config/rbac/v3/rbac.proto' || text.includes('sourced_metadata')) return text;
  const newer = `
// Where the metadata that is matched comes from.
enum MetadataSource {
  DYNAMIC = 0;
  ROUTE = 1;
}

message SourcedMetadata {
  type.matcher.v3.MetadataMatcher metadata_matcher = 1;
  MetadataSource metadata_source = 2;
}
`;
  return `${text
    .replace(/^ *core\.v3\.TypedExtensionConfig uri_template = 13;$/m, '$&\n    SourcedMetadata sourced_metadata = 14;')
    .replace(
      /^ *type\.matcher\.v3\.FilterStateMatcher filter_state = 12;$/m,
      '$&\n    SourcedMetadata sourced_metadata = 13;',
    )}${newer}`;
}

/**
 * The bundle's validate.proto is older than its Envoy files, which use `ignore_empty` on every rule message. The output
 * contains no options; the field must only exist for the files to compile.
 */
function addMissingRuleField(text: string): string {
  return text.replace(/^message (\w+Rules) \{([\s\S]*?)^\}/gm, (message, name: string, body: string) =>
    body.includes('ignore_empty')
      ? message
      : `message ${name} {${body}  optional bool ignore_empty = ${name === 'FieldRules' ? 999 : 998};\n}`,
  );
}

const ownProtos = readdirSync(here, { recursive: true, encoding: 'utf8' }).filter(
  (path) => path.endsWith('.proto') && !path.startsWith('.work'),
);
const roots = readFileSync(join(here, 'roots.txt'), 'utf8').split('\n').filter(Boolean);
const files = importClosure([...roots, ...ownProtos]);

const api = importClosure(wholeApi());

const stamp = createHash('sha256');
for (const [path, text] of [...new Map([...api, ...files])].sort(([a], [b]) => (a < b ? -1 : 1))) {
  stamp.update(path).update(text);
}
for (const name of ['buf.gen.yaml', 'generate.ts', 'outline.ts', 'roots.txt'])
  stamp.update(readFileSync(join(here, name)));
const digest = stamp.digest('hex');
const stampFile = join(out, '.stamp');
if (existsSync(stampFile) && readFileSync(stampFile, 'utf8') === digest) process.exit(0);

rmSync(work, { recursive: true, force: true });
copyTo(join(work, 'protos'), files);
copyTo(join(work, 'api'), api);
cpSync(join(here, 'buf.yaml'), join(work, 'buf.yaml'));
buf('generate');
for (const path of readdirSync(join(work, 'gen'), { recursive: true, encoding: 'utf8' })) {
  if (!path.endsWith('_pb.ts')) continue;
  const file = join(work, 'gen', path);
  writeFileSync(file, withLazyDescriptors(readFileSync(file, 'utf8'), dirname(path)));
}
writeFileSync(join(work, 'api/buf.yaml'), 'version: v2\n');
buf('build', '.work/api', '--exclude-source-info', '--output', '.work/api.binpb');
writeFileSync(join(work, 'gen/envoy-api.binpb'), withoutAnnotations(readFileSync(join(work, 'api.binpb'))));
writeFileSync(join(work, 'gen/.stamp'), digest);
// A rename is atomic: a program that starts at this time loads either the old files or the new ones.
const old = join(work, 'old');
if (existsSync(out)) renameSync(out, old);
renameSync(join(work, 'gen'), out);
rmSync(old, { recursive: true, force: true });
console.log(
  `generated ${relative(process.cwd(), out) || '.'} from ${files.size} .proto files, descriptors of ${api.size}`,
);

/** Every file of the v3 API whose imports are in the bundle, which lacks those of OpenCensus and Prometheus. */
function wholeApi(): string[] {
  const envoy = readdirSync(join(bundle, 'envoy-api'), { recursive: true, encoding: 'utf8' });
  const known = envoy.filter((path) => /\/v3(?:alpha)?\/[^/]+\.proto$/.test(path)).sort();
  return [...known.filter(resolves), 'udpa/type/v1/typed_struct.proto', 'xds/type/v3/typed_struct.proto'];
}

function resolves(path: string): boolean {
  try {
    importClosure([path]);
    return true;
  } catch {
    return false;
  }
}

function copyTo(folder: string, protos: ReadonlyMap<string, string>): void {
  for (const [path, text] of protos) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), path === 'validate/validate.proto' ? addMissingRuleField(text) : text);
  }
}

function buf(...args: string[]): void {
  execFileSync(join(root, 'node_modules/.bin/buf'), args, {
    cwd: here,
    stdio: 'inherit',
    env: { ...process.env, PATH: `${join(root, 'node_modules/.bin')}:${process.env.PATH ?? ''}` },
  });
}

/** Descriptors are parsed on first use: see src/runtime/protobuf/lazy-descriptors.ts. */
function withLazyDescriptors(text: string, folder: string): string {
  const maker = join(relative(folder, '..'), 'runtime/protobuf/lazy-descriptors.ts');
  const call = /fileDesc\("([^"]+)"(?:, \[([^\]]*)\])?\)/;
  const [, descriptor, imports = ''] = call.exec(text) ?? [];
  if (descriptor === undefined)
    throw new Error(`proto/generate: a file of ${folder} has no descriptor where one is expected`);
  const outline = JSON.stringify(outlineOf(fromBinary(FileDescriptorProtoSchema, Buffer.from(descriptor, 'base64'))));
  return text
    .replace(/^(import \{.*)\bfileDesc(?:, )?(.*\} from "@bufbuild\/protobuf\/codegenv2";)$/m, '$1$2')
    .replace(
      /^import type \{.*\} from "@bufbuild\/protobuf\/codegenv2";$/m,
      `$&\nimport { lazyFileDesc } from "${maker}";`,
    )
    .replace(call, () => `lazyFileDesc(${outline}, "${descriptor}", [${imports}])`);
}

/** Removes the options of the API's own tooling: they are half of the descriptors and unused. */
function withoutAnnotations(descriptors: Uint8Array): Uint8Array {
  const set = fromBinary(FileDescriptorSetSchema, descriptors);
  dropUnknown(set);
  return toBinary(FileDescriptorSetSchema, set);
}

function dropUnknown(value: unknown): void {
  if (Array.isArray(value)) for (const item of value) dropUnknown(item);
  if (!isMessage(value)) return;
  delete (value as Message & { $unknown?: unknown }).$unknown;
  for (const field of Object.values(value)) dropUnknown(field);
}
