import { expect, test } from 'vitest';
import { removalTimesOf } from './drain-time.ts';

const defaults = { delayMs: 5_000, drainMs: 45_000 };

test.each([
  ['is drainDuration of its ProxyConfig', { PROXY_CONFIG: { drainDuration: '90s' } }, 90_000],
  ['is parsed from each notation of a duration', { PROXY_CONFIG: { drainDuration: '1m0.500s' } }, 60_500],
  ['is at most an hour', { PROXY_CONFIG: { drainDuration: '10000h' } }, 3_600_000],
  ['is the default if its ProxyConfig contains none', { PROXY_CONFIG: {} }, 45_000],
  ['is the default without a ProxyConfig', {}, 45_000],
  ['is the default if drainDuration is not a duration', { PROXY_CONFIG: { drainDuration: 'long' } }, 45_000],
  ['is the default if drainDuration is negative', { PROXY_CONFIG: { drainDuration: '-5s' } }, 45_000],
  ['is the default if drainDuration is a number', { PROXY_CONFIG: { drainDuration: 9 } }, 45_000],
  ['is the default if the ProxyConfig is not an object', { PROXY_CONFIG: 'drainDuration: 9s' }, 45_000],
])('the drain time for a node %s', (_, metadata, drainMs) => {
  expect(removalTimesOf({ id: 'a', cluster: '', metadata }, defaults)).toEqual({ delayMs: 5_000, drainMs });
});
