/** docs/istioctl.md has a row with the result of each command that the nightly test runs. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { packageRoot } from '../src/runtime/package-root.ts';
import { istioctlCommands } from './node/mesh/istioctl-commands.ts';

test('each row of docs/istioctl.md is a command of the nightly test, which expects the documented result', () => {
  const page = readFileSync(join(packageRoot(), 'docs/istioctl.md'), 'utf8');
  const stated = [...page.matchAll(/^\| `istioctl ([^`]+)` \| (yes|no) \|/gm)].map(
    ([, row, works]) => `${row}: ${works}`,
  );
  const tested = istioctlCommands.map(({ row, code = 0 }) => `${row}: ${code === 0 ? 'yes' : 'no'}`);
  expect(stated).toEqual([...new Set(tested)]);
});
