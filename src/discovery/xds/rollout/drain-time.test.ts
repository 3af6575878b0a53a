import { expect, test } from 'vitest';
import { removalTimesOf } from './drain-time.ts';

const defaults = { delayMs: 5_000, drainMs: 45_000 };

test.each([
  ['is that of its ProxyConfig', { PROXY_CONFIG: { drainDuration: '90s' } }, 90_000],
  ['is read in each form of a duration', { PROXY_CONFIG: { drainDuration: '1m0.500s' } }, 60_500],
  ['is an hour if it says more', { PROXY_CONFIG: { drainDuration: '10000h' } }, 3_600_000],
  ['is the default if it says none', { PROXY_CONFIG: {} }, 45_000],
  ['is the default if it sends no ProxyConfig', {}, 45_000],
  ['is the default if it says no duration', { PROXY_CONFIG: { drainDuration: 'long' } }, 45_000],
  ['is the default if it says a negative one', { PROXY_CONFIG: { drainDuration: '-5s' } }, 45_000],
  ['is the default if it says a number', { PROXY_CONFIG: { drainDuration: 9 } }, 45_000],
  ['is the default if its ProxyConfig is no object', { PROXY_CONFIG: 'drainDuration: 9s' }, 45_000],
])('The drain time of a node %s', (_, metadata, drainMs) => {
  expect(removalTimesOf({ id: 'a', cluster: '', metadata }, defaults)).toEqual({ delayMs: 5_000, drainMs });
});
