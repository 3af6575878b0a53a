import { expect, test } from 'vitest';
import { ensureRunDir } from './run-dir.ts';

test('a run directory that can never be is refused at once, not tried for ever', () => {
  expect(() => ensureRunDir('/proc/x/y')).toThrow(/run directory \/proc\/x\/y: ENOENT/);
});
