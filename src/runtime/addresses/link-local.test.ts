import { expect, test } from 'vitest';
import { isLinkLocal } from './link-local.ts';

test.each(['169.254.0.1', 'fe80::1', 'FEBF::1', 'fe90::1%eth0'])('%s is link-local', (address) =>
  expect(isLinkLocal(address)).toBe(true),
);

test.each(['169.25.4.1', '10.0.0.1', 'fec0::1', 'fe8::1', 'fd00::1', '127.0.0.1'])('%s is not link-local', (address) =>
  expect(isLinkLocal(address)).toBe(false),
);
