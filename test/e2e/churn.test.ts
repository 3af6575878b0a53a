/** The short form of `npm run test:churn`. Memory growth, which takes longer to appear, is not checked. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { Program } from '../harness/program.ts';
import { sized } from '../harness/size-of-run.ts';

const minutes = sized({ short: '0.1', full: '0.4' });

test('a few seconds of churn lose no update and send proxies only updates that affect them', async () => {
  const churn = Program.run('churn', process.execPath, {
    args: [
      join(packageRoot(), 'test/churn/churn.ts'),
      ...['--minutes', minutes, '--services', '200', '--proxies', '30', '--removal-delay', '200'],
    ],
    env: process.env,
    cwd: packageRoot(),
  });
  const { code } = await churn.exited;
  expect(code, churn.output()).toBe(0);
  expect(churn.lines.at(-1)).toMatch(/^churn: ok, seed \d+$/);
});
