/** Runs `npm run lint` as tests: findings of the linter and compiler fail the run. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import manifest from '../package.json' with { type: 'json' };
import { packageRoot } from '../src/runtime/package-root.ts';

test.each(manifest.scripts.lint.split(' && '))('%s finds nothing in a clean tree', async (command) => {
  // The compiler is written in Go. Fewer garbage collections save a third of its CPU time.
  const env = { ...process.env, GOGC: '400' };
  const linter = spawn(`${command} 2>&1`, {
    cwd: packageRoot(),
    env,
    shell: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [output, [code]] = await Promise.all([text(linter.stdout), once(linter, 'close')]);
  expect(code, output).toBe(0);
});
