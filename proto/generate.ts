/**
 * Generates src/gen from Envoy's v3 API and our own .proto files. Works offline once npm has installed its packages.
 *
 * The .proto files come from the npm package @grpc/grpc-js-xds; only the import closure of roots.txt is copied to a
 * work folder, because the bundle also holds v2 files that do not resolve.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

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
const work = join(here, '.work/protos');
const out = join(root, 'src/gen');

/** Finds a .proto file by its import path in the first source folder that has it. */
function locate(importPath: string): string | undefined {
  return sources.map((dir) => join(dir, importPath)).find((path) => existsSync(path));
}

/** The files that the roots need, themselves included: import path → text. Google's well-known types come with buf. */
function importClosure(roots: readonly string[]): Map<string, string> {
  const found = new Map<string, string>();
  const todo = [...roots];
  for (let path = todo.pop(); path !== undefined; path = todo.pop()) {
    if (found.has(path) || path.startsWith('google/protobuf/')) continue;
    const file = locate(path);
    if (file === undefined)
      throw new Error(`proto/generate: ${path} is imported but in none of: ${sources.join(', ')}`);
    const text = readFileSync(file, 'utf8');
    found.set(path, text);
    for (const match of text.matchAll(/^\s*import\s+(?:public\s+|weak\s+)?"([^"]+)"/gm)) todo.push(match[1]!);
  }
  return found;
}

/**
 * The bundle's validate.proto is older than its Envoy files, which use `ignore_empty` on every rule message.
 * The options are dropped from the output anyway; the field only has to exist for the files to compile.
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

const stamp = createHash('sha256');
for (const [path, text] of [...files].sort(([a], [b]) => (a < b ? -1 : 1))) stamp.update(path).update(text);
for (const name of ['buf.gen.yaml', 'generate.ts']) stamp.update(readFileSync(join(here, name)));
const digest = stamp.digest('hex');
const stampFile = join(out, '.stamp');
if (existsSync(stampFile) && readFileSync(stampFile, 'utf8') === digest) process.exit(0);

rmSync(work, { recursive: true, force: true });
rmSync(out, { recursive: true, force: true });
for (const [path, text] of files) {
  mkdirSync(dirname(join(work, path)), { recursive: true });
  writeFileSync(join(work, path), path === 'validate/validate.proto' ? addMissingRuleField(text) : text);
}
cpSync(join(here, 'buf.yaml'), join(work, '../buf.yaml'));
execFileSync(join(root, 'node_modules/.bin/buf'), ['generate'], {
  cwd: here,
  stdio: 'inherit',
  env: { ...process.env, PATH: `${join(root, 'node_modules/.bin')}:${process.env.PATH ?? ''}` },
});
writeFileSync(stampFile, digest);
console.log(`generated ${relative(process.cwd(), out) || '.'} from ${files.size} .proto files`);
