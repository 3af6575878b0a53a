import { describe, expect, it } from 'vitest';
import { configKeyText, parseConfigKey } from '../config/config.ts';
import { isCidr, isHostname, isHostOrWildcard, isObjectName } from './names.ts';
import { nearestName } from './nearest-name.ts';

describe('a check of names and addresses', () => {
  const checks = { isHostname, isHostOrWildcard, isObjectName, isCidr };

  it.each<[keyof typeof checks, string, boolean]>([
    ['isHostname', 'a-1.example.com', true],
    ['isHostname', 'a_b.example.com', true],
    ['isHostname', '-a.b', false],
    ['isHostname', 'a..b', false],
    ['isHostname', `${'a'.repeat(64)}.b`, false],
    ['isHostOrWildcard', '*.a.b', true],
    ['isHostOrWildcard', '*', true],
    ['isHostOrWildcard', 'a.*.b', false],
    ['isHostOrWildcard', '*a.b', false],
    ['isObjectName', 'a.b-c', true],
    ['isObjectName', 'A', false],
    ['isCidr', '10.0.0.0/8', true],
    ['isCidr', '10.0.0.0/33', false],
    ['isCidr', '2001:db8::/64', true],
    ['isCidr', '10.0.0.0', false],
  ])('%s returns for %s the result %s', (check, value, expected) => {
    expect(checks[check](value)).toBe(expected);
  });

  it.each([
    ['timout', 'timeout'],
    ['Timeout', 'timeout'],
    ['rout', 'route'],
    ['x', undefined],
    ['completely', undefined],
  ])('nearestName returns for the name %s the suggestion %s', (misspelled, expected) => {
    expect(nearestName(misspelled, ['timeout', 'route', 'retries'])).toBe(expected);
  });
});

it('an object key remains equal after conversion to text and back', () => {
  const key = { kind: 'ServiceEntry', namespace: 'shop', name: '*.example.com' };
  expect(parseConfigKey(configKeyText(key))).toEqual(key);
});
