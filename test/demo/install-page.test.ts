/** `npm run demo:cluster` runs the commands of docs/install.md that need no choice of the user. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { packageRoot } from '../../src/runtime/package-root.ts';

const read = (file: string): string => readFileSync(join(packageRoot(), file), 'utf8');

it('the demo runs each command of the blocks "sh demo" of docs/install.md unchanged', () => {
  const blocks = [...read('docs/install.md').matchAll(/^```sh demo\n(.*?)^```/gms)].map(([, text]) => text!);
  const commands = blocks.flatMap((text) => text.trim().split('\n'));
  const demo = ['cluster-mesh', 'check-cluster'].map((name) => read(`test/demo/${name}.ts`)).join('');
  expect(commands.length).toBeGreaterThan(15);
  expect(commands.filter((command) => !demo.includes(`'${command}'`))).toEqual([]);
});
