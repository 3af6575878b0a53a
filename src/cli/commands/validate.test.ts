import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { validateFiles } from '../../discovery/config/validation/validate-files.ts';
import { problemText } from '../../model/config/problem.ts';
import { type CommandStreams, validateCommand } from './validate.ts';

let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'chartpilot-validate-'));
});

afterEach(() => {
  process.exitCode = 0;
  rmSync(root, { recursive: true, force: true });
});

function file(name: string, text: string): string {
  mkdirSync(join(root, name, '..'), { recursive: true });
  writeFileSync(join(root, name), text);
  return join(root, name);
}

const goodRule = `apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: cart, namespace: shop}
spec: {host: cart.test}
`;
const twoErrors = `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: shop}
spec:
  hosts: [web.test]
  http:
    - timeout: soon
      route: [{destination: {hots: web.test}}]
`;

describe('pilot-discovery validate', () => {
  test('reports all errors of all files in the order of files and lines, with their locations', async () => {
    file('b.yaml', twoErrors);
    file('deep/a.yaml', goodRule);
    const { problems, objects, files } = await validateFiles([root]);
    expect({ objects, files }).toEqual({ objects: 1, files: 2 });
    expect(problems.map((problem) => problemText(problem).replace(`${root}/`, ''))).toEqual([
      expect.stringMatching(/^b\.yaml:7:\d+: error: VirtualService shop\/web: spec\.http\[0\]\.timeout: /),
      expect.stringMatching(
        /^b\.yaml:8:\d+: error: VirtualService shop\/web: spec\.http\[0\]\.route\[0\]\.destination\.host: /,
      ),
      expect.stringMatching(/^b\.yaml:8:\d+: error: VirtualService shop\/web: .*hots/),
    ]);
  });

  test('reports a rejected restriction and the traffic that is blocked as a result', async () => {
    file(
      'a.yaml',
      'apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: web, namespace: shop}\nspec: {action: deny}\n',
    );
    const { problems } = await validateFiles([root]);
    expect(problems.map(({ severity, code, got }) => [severity, code, got])).toEqual([
      ['warning', 'OBJECT_REJECTED', undefined],
      ['error', 'FIELD_VALUE_UNKNOWN', '"deny"'],
    ]);
  });

  test('warns of objects that another file defines differently, and names the applied definition', async () => {
    const first = file('a.yaml', goodRule);
    const other = `# later\n${goodRule.replace('metadata: {', 'metadata: {labels: {track: beta}, ')}`;
    expect(other).toContain('beta');
    const { problems } = await validateFiles([first, file('b.yaml', other)]);
    expect(problems.map(problemText)).toEqual([
      expect.stringMatching(/b\.yaml:2: warning: DestinationRule shop\/cart: .*a\.yaml:1, and the first one applies/),
    ]);
  });

  test('does not report objects that another file defines identically', async () => {
    const { problems, objects } = await validateFiles([
      file('a.yaml', goodRule),
      file('b.yaml', `# again\n${goodRule}`),
    ]);
    expect([problems, objects]).toEqual([[], 1]);
  });

  test('reports unreadable files, and still validates the other ones', async () => {
    const { unreadable, problems } = await validateFiles([join(root, 'missing.yaml'), root, file('b.txt', twoErrors)]);
    expect(unreadable).toEqual([
      expect.stringContaining('missing.yaml: ENOENT'),
      expect.stringContaining('the directory has no files *.yaml'),
    ]);
    expect(problems).toHaveLength(3);
  });
});

describe('pilot-discovery validate with hostile files', () => {
  test('reports all problems even if they exceed the number of arguments of a call', async () => {
    const { problems } = await validateFiles([], [{ file: 'a.yaml', text: '1\n---\n'.repeat(150_000) }]);
    expect(problems).toHaveLength(150_000);
  });

  test.each([
    [
      'an EnvoyFilter',
      'networking.istio.io/v1alpha3\nkind: EnvoyFilter',
      'configPatches: [{applyTo: CLUSTER, patch: {operation: MERGE, value: &v {a: *v}}}]',
    ],
    [
      'a WasmPlugin',
      'extensions.istio.io/v1alpha1\nkind: WasmPlugin',
      'url: oci://x/y:1\n  pluginConfig: &v {a: [*v]}',
    ],
    ['a List', 'v1\nkind: List\nitems: &v [{apiVersion: v1, kind: List, items: *v}]', 'x'],
  ])(
    'reports an alias within its own value as an error of its object, along with other errors: %s',
    async (_, kind, spec) => {
      const text = `apiVersion: ${kind}\nmetadata: {name: a, namespace: shop}\nspec:\n  ${spec}\n---\n${goodRule}`;
      const { problems, objects } = await validateFiles([], [{ file: 'a.yaml', text }]);
      expect(objects).toBe(1);
      expect(problems.filter(({ severity }) => severity === 'error')).toMatchObject([{ code: 'YAML_INVALID' }]);
    },
  );

  test('warns of bytes that are not UTF-8, with their location', async () => {
    const path = file('a.yaml', goodRule);
    writeFileSync(
      path,
      Buffer.from(goodRule.replace('{name: cart', '{annotations: {a: "caf\u00e9"}, name: cart'), 'latin1'),
    );
    const { problems, objects } = await validateFiles([path]);
    expect(objects).toBe(1);
    expect(problems).toMatchObject([{ severity: 'warning', line: 3, column: 33, code: 'YAML_INVALID' }]);
  });
});

describe('command pilot-discovery validate', () => {
  async function run(...args: string[]): Promise<{ code: unknown; out: string; error: string }> {
    const printedOutput = { out: '', error: '' };
    const streams: CommandStreams = {
      out: (text) => {
        printedOutput.out += text;
      },
      error: (text) => {
        printedOutput.error += text;
      },
    };
    await validateCommand(streams).parseAsync(args, { from: 'user' });
    return { code: process.exitCode, ...printedOutput };
  }

  test('reads --domain as pilot-discovery does: in any case, and rejects values that are not a host name', async () => {
    const rule = goodRule.replace(
      'cart.test',
      'cart, trafficPolicy: { tls: { mode: SIMPLE, credentialName: client } }',
    );
    const route = `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: { name: web, namespace: shop }
spec: { hosts: [a.test], gateways: [egress], http: [{ route: [{ destination: { host: cart.shop.svc.mesh.internal } }] }] }
`;
    const files = file('a.yaml', `${rule}---\n${route}`);
    const unreached = 'credentialName: applies to gateways only';
    expect((await run(files)).out).toContain(unreached);
    expect((await run(files, '--domain', 'Mesh.Internal')).out).not.toContain(unreached);
    await expect(run(file('a.yaml', goodRule), '--domain', 'a b')).rejects.toThrow('--domain: must be a DNS domain');
  });

  test('exits with 0 for valid files, 1 for errors and 2 for unreadable files', async () => {
    expect(await run(file('a.yaml', goodRule))).toEqual({
      code: 0,
      out: '',
      error:
        'note: references to ServiceEntry objects are not checked: the files contain none\n' +
        '1 valid object in 1 file: 0 errors, 0 warnings\n',
    });
    // The second file is also in the first folder, and is read once.
    const badResult = await run(root, file('b.yaml', twoErrors));
    expect([badResult.code, badResult.out.split('\n').length]).toEqual([1, 4]);
    expect((await run(join(root, 'missing'))).code).toBe(2);
  });

  test('treats warnings as errors with --strict', async () => {
    const unknownKind = file('c.yaml', 'apiVersion: example.com/v1\nkind: Odd\nmetadata: {name: a}\n');
    expect((await run(unknownKind)).code).toBe(0);
    expect((await run(unknownKind, '--strict')).code).toBe(1);
  });

  test('checks a mesh configuration, and prints JSON', async () => {
    const mesh = file('mesh', 'connectTimeout: soon\n');
    const { code, out } = await run(file('a.yaml', goodRule), '--meshConfig', mesh, '--format', 'json');
    expect(code).toBe(1);
    expect(JSON.parse(out)).toMatchObject({ objects: 1, problems: [{ file: mesh, field: 'connectTimeout' }] });
  });
});
