/**
 * `deploy/chart/crds` contains the definitions that `pilot-discovery crds` prints: Helm installs them if they do not
 * exist.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { crdsCommand } from '../src/cli/commands/crds.ts';
import { packageRoot } from '../src/runtime/package-root.ts';

const file = join(packageRoot(), 'deploy/chart/crds/istio-api.yaml');

test('the CRDs in the chart equal those of the program', async () => {
  const printedTexts: string[] = [];
  await crdsCommand((text) => printedTexts.push(text)).parseAsync([], { from: 'user' });
  const text = printedTexts.join('');
  if (process.env.UPDATE_TABLES === '1') writeFileSync(file, text);
  expect(existsSync(file) && readFileSync(file, 'utf8') === text, `${file}: run with UPDATE_TABLES=1`).toBe(true);
});
