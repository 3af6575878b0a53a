/** The documentation quotes the actual output of the programs. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { temporaryFolder } from '../fixtures/real-envoy.ts';

const root = packageRoot();
const page = readFileSync(join(root, 'docs/explaining-a-request.md'), 'utf8');

/** The command after `$` in a block of the page, and its output below. */
function quotedOutput(program: string): { readonly command: string; readonly lines: readonly string[] } {
  const block = new RegExp(`^\`\`\`\\n\\$ ((?:bin/)?${program}[\\s\\S]*?)^\`\`\``, 'm').exec(page)?.[1];
  if (block === undefined) throw new Error(`docs/explaining-a-request.md has no block that starts with $ ${program}`);
  const [, command = '', output = ''] = /^((?:[^\n]*\\\n)*[^\n]*)\n([\s\S]*)$/.exec(block) ?? [];
  return { command, lines: output.trimEnd().split('\n') };
}

function outputOf(command: string, cwd: string): string[] {
  const env = { ...process.env, PATH: `${join(root, 'bin')}:${process.env.PATH}` };
  return spawnSync('/bin/sh', ['-c', command], { cwd, env, encoding: 'utf8' }).stdout.trimEnd().split('\n');
}

test('docs/explaining-a-request.md quotes the output of explain for the example mesh', () => {
  const { command, lines } = quotedOutput('pilot-discovery explain');
  const printedLines = outputOf(command, root);
  const omission = lines.indexOf('…');
  expect(printedLines.slice(0, omission)).toEqual(lines.slice(0, omission));
  expect(printedLines.at(-1)).toBe(lines.at(-1));
});

test('docs/explaining-a-request.md quotes the output of validate for its example', () => {
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  mkdirSync(join(folder.path, 'mesh'));
  writeFileSync(join(folder.path, 'mesh/cart.yaml'), /^```yaml\n([\s\S]*?)^```/m.exec(page)![1]!);
  const { command, lines } = quotedOutput('pilot-discovery validate');
  expect(outputOf(command, folder.path)).toEqual(lines);
});
