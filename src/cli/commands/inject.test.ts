import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { injectCommand } from './inject.ts';

let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'chartpilot-inject-'));
});

afterEach(() => {
  process.exitCode = 0;
  rmSync(root, { recursive: true, force: true });
});

function file(name: string, text: string): string {
  writeFileSync(join(root, name), text);
  return join(root, name);
}

async function run(...args: readonly string[]): Promise<{ code: unknown; out: string; error: string }> {
  const printedOutput = { out: '', error: '' };
  const command = injectCommand({
    out: (text) => {
      printedOutput.out += text;
    },
    error: (text) => {
      printedOutput.error += text;
    },
  });
  await command.exitOverride().parseAsync([...args], { from: 'user' });
  return { code: process.exitCode, ...printedOutput };
}

const pod = 'apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers: [{name: app}]\n';
const service = 'apiVersion: v1\nkind:   Service # kept\nmetadata: {name: s}\n';

test('pilot-discovery inject adds a sidecar to pods of several files, with the settings of the files', async () => {
  const values = file('values.yaml', 'global: {hub: example.com, tag: "1"}');
  const config = file('config.yaml', 'injectedAnnotations: {a: b}');
  const mesh = file('mesh.yaml', 'trustDomain: example.org');
  const paths = ['-f', file('a.yaml', service), '-f', file('b.yaml', pod)];
  const { code, out, error } = await run(
    ...paths,
    '--valuesFile',
    values,
    '--injectConfigFile',
    config,
    '--meshConfigFile',
    mesh,
  );
  expect({ code, error }).toEqual({ code: 0, error: '' });
  expect(out.startsWith(`${service}---\n`)).toBe(true);
  expect(out).toContain('example.com/proxyv2:1');
  expect(out).toContain('example.org');
  expect(out).toContain('a: b');
});

test('pilot-discovery inject prints no manifest if any injection fails, and reports file, line, object and field', async () => {
  const values = file('values.yaml', 'global: {hub: example.com, tag: "1"}');
  const brokenFile = file(
    'b.yaml',
    `${service}---\n${pod.replace('name: p', 'name: p, annotations: {sidecar.istio.io/proxyCPU: x}')}`,
  );
  const { code, out, error } = await run('-f', file('a.yaml', pod), '-f', brokenFile, '--valuesFile', values);
  expect({ code, out }).toEqual({ code: 1, out: '' });
  expect(error).toContain(`${brokenFile}:4: Pod default/p: metadata.annotations["sidecar.istio.io/proxyCPU"]:`);
});

test.each([
  ['a missing manifest', ['-f', '/nowhere/a.yaml'], 'global: {hub: x, tag: "1"}', 2, '/nowhere/a.yaml'],
  ['values without an image', ['-f', '-'], '{}', 1, 'global.hub'],
])('pilot-discovery inject reports %s', async (_, args, values, code, message) => {
  const fileArgs = args.map((arg) => (arg === '-' ? file('a.yaml', pod) : arg));
  const result = await run(...fileArgs, '--valuesFile', file('values.yaml', values));
  expect({ code: result.code, out: result.out }).toEqual({ code, out: '' });
  expect(result.error).toContain(message);
});

test('pilot-discovery inject prints a note for a pod that is not injected, with the deciding rule', async () => {
  const values = file('values.yaml', 'global: {hub: example.com, tag: "1"}');
  const host = file('a.yaml', pod.replace('containers', 'hostNetwork: true\n  containers'));
  const { code, out, error } = await run('-f', host, '--valuesFile', values);
  expect({ code, out }).toEqual({ code: 0, out: expect.stringContaining('hostNetwork') });
  expect(error).toContain('note: ');
  expect(error).toContain('spec.hostNetwork is true');
});
