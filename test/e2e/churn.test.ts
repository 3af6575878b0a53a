/** The short form of `npm run test:churn`: everything is judged but the growth of memory, which takes longer to be seen. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { Program } from '../harness/program.ts';

test('half a minute of churn: no update is missed, nobody is sent what does not concern it', async () => {
  const churn = Program.run('churn', process.execPath, {
    args: [join(packageRoot(), 'test/churn/churn.ts'), ...['--minutes', '0.4', '--services', '200', '--proxies', '50']],
    env: process.env,
    cwd: packageRoot(),
  });
  const { code } = await churn.exited;
  expect(code, churn.output()).toBe(0);
  expect(churn.lines.at(-1)).toMatch(/^churn: ok, seed \d+$/);
});
