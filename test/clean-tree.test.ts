/** `npm run lint`, beside the tests: what the linter and the compiler find fails the run as a test does. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import manifest from '../package.json' with { type: 'json' };
import { packageRoot } from '../src/runtime/package-root.ts';

test.each(manifest.scripts.lint.split(' && '))('%s finds nothing', async (command) => {
  const linter = spawn(`${command} 2>&1`, { cwd: packageRoot(), shell: true, stdio: ['ignore', 'pipe', 'inherit'] });
  const [output, [code]] = await Promise.all([text(linter.stdout), once(linter, 'close')]);
  expect(code, output).toBe(0);
});
