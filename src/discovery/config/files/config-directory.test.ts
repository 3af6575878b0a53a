import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { switchedMount } from '../../../../test/harness/switched-mount.ts';
import { ConfigDirectory, type DirectoryReading } from './config-directory.ts';

let root: string;
let directory: ConfigDirectory;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'chartpilot-config-'));
  directory = new ConfigDirectory(root);
});

afterEach(() => rmSync(root, { recursive: true, force: true }));

function write(name: string, text: string): void {
  mkdirSync(dirname(join(root, name)), { recursive: true });
  writeFileSync(join(root, name), text);
}

/** A VirtualService that routes all requests to one host. */
function route(name: string, host: string, extraSpec = ''): string {
  return `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: ${name}, namespace: shop${extraSpec}}
spec:
  hosts: [${name}.example.com]
  http:
    - route: [{destination: {host: ${host}}}]
`;
}

async function read(paths: readonly string[] = []): Promise<Extract<DirectoryReading, { outcome: 'read' }>> {
  const directoryReading = await directory.read(paths);
  if (directoryReading.outcome !== 'read') throw new Error(`the directory is ${directoryReading.outcome}`);
  return directoryReading;
}

const keys = (): string[] => [...directory.snapshot.byKey.keys()].sort();
const hostOf = (name: string): string =>
  JSON.stringify(directory.snapshot.byKey.get(`VirtualService/shop/${name}`)?.spec).replace(
    /.*"destination":\{"host":"([^"]*)".*/,
    '$1',
  );

describe('ConfigDirectory', () => {
  it('reads only YAML and JSON files, at any depth', async () => {
    write('a.yaml', `${route('a', 'x.com')}---\n${route('b', 'x.com')}`);
    write('deep/er/c.yml', route('c', 'x.com'));
    write('d.json', `${JSON.stringify(parse(route('d', 'x.com')), undefined, '\t')}\n`);
    write('.e.yaml', route('e', 'x.com'));
    write('f.txt', route('f', 'x.com'));
    const { problems } = await read();
    expect(keys()).toEqual(['a', 'b', 'c', 'd'].map((name) => `VirtualService/shop/${name}`));
    expect(problems).toEqual([]);
  });

  it('reports files with an ignored extension once, until they are renamed', async () => {
    write('a.yaml', route('a', 'x.com'));
    expect((await read()).problems).toEqual([]);
    write('b.YAML', route('b', 'x.com'));
    const { problems } = await read([join(root, 'b.YAML')]);
    expect(problems).toMatchObject([{ severity: 'warning', code: 'CONFIG_FILE_IGNORED' }]);
    expect(problems[0]!.place).toMatchObject({ file: join(root, 'b.YAML') });
    expect((await read()).problems).toEqual([]);
    renameSync(join(root, 'b.YAML'), join(root, 'b.yml'));
    expect(await read()).toMatchObject({ problems: [], problemCount: 0 });
    expect(keys()).toEqual(['VirtualService/shop/a', 'VirtualService/shop/b']);
  });

  it('reports added, updated and deleted objects', async () => {
    write('a.yaml', route('a', 'x.com'));
    write('b.yaml', route('b', 'x.com'));
    await read();
    rmSync(join(root, 'a.yaml'));
    write('b.yaml', route('b', 'y.com'));
    write('c.yaml', route('c', 'x.com'));
    expect((await read()).changes).toEqual([
      { key: 'VirtualService/shop/a', event: 'delete' },
      { key: 'VirtualService/shop/c', event: 'add' },
      { key: 'VirtualService/shop/b', event: 'update' },
    ]);
  });

  it('reports no change if a file is rewritten with equal content, or an object moves to another file', async () => {
    write('a.yaml', route('a', 'x.com'));
    const first = await read();
    write('a.yaml', `# a comment\n${route('a', 'x.com')}`);
    expect((await read()).changes).toEqual([]);
    renameSync(join(root, 'a.yaml'), join(root, 'z.yaml'));
    expect(await read()).toMatchObject({ changes: [], version: first.version });
  });

  it('ignores labels that do not affect the mesh', async () => {
    write('a.yaml', route('a', 'x.com', ', labels: {team: one}'));
    await read();
    write('a.yaml', route('a', 'x.com', ', labels: {team: two}'));
    expect((await read()).changes).toEqual([]);
    write('a.yaml', route('a', 'x.com', ', labels: {istio.io/rev: two}'));
    expect((await read()).changes).toEqual([{ key: 'VirtualService/shop/a', event: 'update' }]);
  });

  it('keeps the last valid version of an object that becomes invalid, and applies the other objects of its file', async () => {
    write('a.yaml', `${route('a', 'x.com')}---\n${route('b', 'x.com')}`);
    await read();
    write('a.yaml', `${route('a', 'y.com').replace('route:', 'roote:')}---\n${route('b', 'y.com')}`);
    const directoryReading = await read();
    expect(directoryReading.changes).toEqual([{ key: 'VirtualService/shop/b', event: 'update' }]);
    expect(directoryReading.problems).toMatchObject([
      {
        place: { file: join(root, 'a.yaml') },
        object: 'VirtualService shop/a',
        field: expect.stringContaining('roote'),
      },
      { object: 'VirtualService shop/a', field: 'spec.http[0]' },
    ]);
    expect([hostOf('a'), hostOf('b')]).toEqual(['x.com', 'y.com']);
  });

  it('keeps all objects of a file that cannot be parsed', async () => {
    write('a.yaml', `${route('a', 'x.com')}---\n${route('b', 'x.com')}`);
    await read();
    write('a.yaml', 'spec: {hosts: [');
    const directoryReading = await read();
    expect(directoryReading.changes).toEqual([]);
    expect(directoryReading.problems[0]).toMatchObject({ place: { file: join(root, 'a.yaml'), line: 1 } });
    expect(keys()).toEqual(['VirtualService/shop/a', 'VirtualService/shop/b']);
  });

  it('reports a problem once, and reports when it is resolved', async () => {
    write('a.yaml', 'spec: {hosts: [');
    expect((await read()).problems.length).toBeGreaterThan(0);
    write('b.yaml', route('b', 'x.com'));
    expect(await read()).toMatchObject({ problems: [], recovered: [] });
    write('a.yaml', route('a', 'x.com'));
    expect(await read()).toMatchObject({ problems: [], problemCount: 0, recovered: [join(root, 'a.yaml')] });
  });

  it('deletes the objects of a removed file, even if the file was invalid', async () => {
    write('a.yaml', route('a', 'x.com'));
    await read();
    write('a.yaml', 'spec: {hosts: [');
    await read();
    rmSync(join(root, 'a.yaml'));
    expect((await read()).changes).toEqual([{ key: 'VirtualService/shop/a', event: 'delete' }]);
  });

  it('applies the first of two objects with the same key, and reports where that object is', async () => {
    write('a.yaml', route('a', 'x.com'));
    write('b.yaml', route('a', 'y.com'));
    expect((await read()).problems).toMatchObject([
      { place: { file: join(root, 'b.yaml') }, message: expect.stringContaining(`${join(root, 'a.yaml')}:1`) },
    ]);
    expect(hostOf('a')).toBe('x.com');
    rmSync(join(root, 'a.yaml'));
    await read();
    expect(hostOf('a')).toBe('y.com');
  });

  it('keeps all objects when its directory is removed', async () => {
    write('a.yaml', route('a', 'x.com'));
    await read();
    rmSync(root, { recursive: true });
    expect(await directory.read()).toMatchObject({
      outcome: 'missing',
      problems: [
        {
          place: { file: root },
          message: expect.stringMatching(/^the configuration directory does not exist → create/),
        },
      ],
    });
    expect(keys()).toEqual(['VirtualService/shop/a']);
  });

  it('reports a problem if its path is a file', async () => {
    rmSync(root, { recursive: true });
    writeFileSync(root, '');
    expect(await directory.read()).toMatchObject({
      outcome: 'missing',
      problems: [{ place: { file: root }, message: expect.stringMatching(/^not a directory → create/) }],
    });
  });

  it('follows the links of a Kubernetes volume mount, and reads each object once', async () => {
    write('..v1/a.yaml', route('a', 'x.com'));
    symlinkSync('..v1', join(root, '..data'));
    symlinkSync('..data/a.yaml', join(root, 'a.yaml'));
    expect(await read()).toMatchObject({ objects: 1, problems: [] });
    write('..v2/a.yaml', route('a', 'y.com'));
    symlinkSync('..v2', join(root, '..tmp'));
    renameSync(join(root, '..tmp'), join(root, '..data'));
    expect((await read()).changes).toEqual([{ key: 'VirtualService/shop/a', event: 'update' }]);
  });

  it('reads the objects of one version while Kubernetes switches the mount', async () => {
    const names = Array.from({ length: 20 }, (_, number) => `a${number}`);
    const versions = ['one.test', 'two.test', 'three.test'].map((host) =>
      Object.fromEntries(names.map((name) => [`${name}.yaml`, route(name, host)])),
    );
    // On a busy machine, a read of the files takes long. The directory gives up if the mount is switched during each attempt.
    const mount = await switchedMount(root, versions, 150);
    const seenVersions = new Set<string>();
    try {
      for (let i = 0; i < 150 || seenVersions.size < versions.length; i++) {
        await directory.read();
        const specs = [...directory.snapshot.byKey.values()].map(({ spec }) => JSON.stringify(spec));
        const hosts = new Set(specs.map((spec) => /\w+\.test/.exec(spec)?.[0]));
        expect(hosts.size).toBe(1);
        seenVersions.add([...hosts].join());
      }
    } finally {
      await mount.stop();
    }
  });

  it('terminates when links form a cycle', async () => {
    write('sub/a.yaml', route('a', 'x.com'));
    symlinkSync(root, join(root, 'sub/loop'));
    expect(await read()).toMatchObject({ objects: 1, problems: [] });
  });

  it('parses only the changed file if one of 3,000 has changed', async () => {
    for (let i = 0; i < 3_000; i++) write(`${i}.yaml`, route(`r${i}`, 'x.com'));
    await read();
    const previous = directory.snapshot.byKey.get('VirtualService/shop/r7');
    write('8.yaml', route('r8', 'y.com'));
    const start = process.threadCpuUsage();
    const { changes } = await read();
    const { user, system } = process.threadCpuUsage(start);
    expect(user + system).toBeLessThan(1_000_000);
    expect(changes).toEqual([{ key: 'VirtualService/shop/r8', event: 'update' }]);
    expect(directory.snapshot.byKey.get('VirtualService/shop/r7')).toBe(previous);
  });

  // The property test found that the placeholder of x was treated as an earlier version of y, because b/c.yaml had contained both.
  it('does not repeat the report of a rejected object while its file is unchanged', async () => {
    const brokenPolicy = (name: string): string =>
      `spec: [apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: ${name}}\n`;
    const filesInForce = (): unknown[] =>
      [...directory.snapshot.byKey].map(([key, { source }]) => [key.replace(/ .*/, ''), source?.file]).sort();
    write('b/c.yaml', brokenPolicy('x'));
    write('b-x.yaml', brokenPolicy('y'));
    await read();
    write('b/c.yaml', brokenPolicy('y'));
    await read();
    const { snapshot } = directory;
    expect(filesInForce()).toEqual([
      ['AuthorizationPolicy//x', join(root, 'b/c.yaml')],
      ['AuthorizationPolicy//y', join(root, 'b/c.yaml')],
    ]);
    expect((await read()).changes).toEqual([]);
    expect(filesInForce()).toEqual([
      ['AuthorizationPolicy//x', join(root, 'b/c.yaml')],
      ['AuthorizationPolicy//y', join(root, 'b/c.yaml')],
    ]);
    expect(directory.snapshot).toBe(snapshot);
  });

  // The property test found that the problem named the first file in the order of reading.
  it('applies the first definition in file order, regardless of the order in which files are read', async () => {
    const policy = (rules: string): string =>
      `apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: x}\nspec: {rules: ${rules}}\n`;
    write('b.yaml', policy('"?"'));
    await read();
    write('a.yaml', policy('"?"'));
    await read();
    write('c.yaml', policy('[]'));
    const { problems } = await read();
    const [repetition] = problems.filter(({ code }) => code === 'OBJECT_DUPLICATE');
    expect(repetition).toMatchObject({
      severity: 'error',
      message: expect.stringContaining(join(root, 'a.yaml:1 takes precedence')),
    });
  });
});
