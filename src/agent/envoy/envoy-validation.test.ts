import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from '../../../test/fixtures/real-envoy.ts';
import { eventually } from '../../../test/harness/eventually.ts';
import { isAlive } from '../../../test/harness/process-alive.ts';
import { validateWithEnvoy } from './envoy-validation.ts';

test('returns no result if the validation exceeds its limit, and ends its processes', async () => {
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const binary = join(folder.path, 'envoy');
  const pid = join(folder.path, 'pid');
  writeFileSync(binary, `#!/bin/sh\nsh -c 'echo $$ >${pid}; exec sleep 60'\n`, { mode: 0o700 });
  const startMs = performance.now();
  const result = await validateWithEnvoy({ binary, guard: [] }, ['--mode', 'validate'], {
    signal: new AbortController().signal,
    limitMs: 2_000,
  });
  expect(result).toEqual({ is: 'not known', why: 'envoy --mode validate did not finish within 2000 ms' });
  expect(performance.now() - startMs).toBeLessThan(30_000);
  await eventually('what it has started has ended', () => !isAlive(Number(readFileSync(pid, 'utf8'))));
});
