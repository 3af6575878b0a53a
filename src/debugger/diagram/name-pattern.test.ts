import { describe, expect, test } from 'vitest';
import { joinBindings, matchName, nameAt, namePattern } from './name-pattern.ts';

const match = (pattern: string, name: string) => matchName(namePattern(pattern)!, name);

describe('a pattern of actor names', () => {
  test('matches one actor if it has no N', () => {
    expect(match('supervisor', 'supervisor')).toBe('free');
    expect(match('supervisor', 'supervisor-1')).toBeUndefined();
  });

  test('binds N to the number in the name', () => {
    expect(match('epoch-N', 'epoch-3')).toBe('3');
    expect(match('epoch-N', 'epoch-x')).toBeUndefined();
    expect(match('epoch-N', 'epoch-03')).toBeUndefined();
    expect(match('epoch-N', 'old-epoch-3')).toBeUndefined();
  });

  test('binds N+1 only to numbers of at least 1', () => {
    expect(match('epoch-N+1', 'epoch-3')).toBe('2');
    expect(match('epoch-N+1', 'epoch-0')).toBeUndefined();
  });

  test('matches paths, where a second N is the same number', () => {
    expect(match('ads-connection-N/stream', 'ads-connection-17/stream')).toBe('17');
    expect(match('ads-connection-N/stream', 'ads-connection-17')).toBeUndefined();
    expect(match('epoch-N/try-N+1', 'epoch-4/try-5')).toBe('4');
    expect(match('epoch-N/try-N+1', 'epoch-4/try-4')).toBeUndefined();
  });

  test('distinguishes number series by the letter after the number', () => {
    expect(match('epoch-N', 'epoch-0b')).toBe('0b');
    expect(match('epoch-N+1', 'epoch-1b')).toBe('0b');
    expect(match('epoch-N+1', 'epoch-0b')).toBeUndefined();
    expect(match('epoch-N/try-N+1', 'epoch-4b/try-5')).toBeUndefined();
    expect(match('epoch-0', 'epoch-0b')).toBeUndefined();
    expect(nameAt(namePattern('epoch-N+1')!, '0b')).toBe('epoch-1b');
  });

  test('matches all characters except N literally', () => {
    expect(match('a.b-N', 'axb-1')).toBeUndefined();
    expect(match('Name', 'Name')).toBe('free');
    expect(match('status-NACK', 'status-NACK')).toBe('free');
  });

  test('matches any actor of a series if it contains *, without binding N', () => {
    expect(match('api-server-*', 'api-server-0')).toBe('free');
    expect(match('api-server-*', 'api-server-17')).toBe('free');
    for (const name of ['api-server', 'api-server-x', 'api-server-1/ping', 'api-server-01'])
      expect(match('api-server-*', name)).toBeUndefined();
    expect(nameAt(namePattern('api-server-*')!, '3')).toBe('api-server-*');
    for (const wrongPattern of ['*-1', 'api-*-server', 'api-server-*/ping'])
      expect(match(wrongPattern, 'api-server-1')).toBeUndefined();
  });

  test('is invalid if N has no meaning at its position', () => {
    expect(namePattern('epoch-N-1')).toBeUndefined();
    expect(namePattern('N')).toBeUndefined();
    expect(namePattern('N/process')).toBeUndefined();
    expect(namePattern('epoch-N+M')).toBeUndefined();
  });

  test('contains the number instead of N if N is known', () => {
    const next = namePattern('epoch-N+1/process')!;
    expect(nameAt(next, '4')).toBe('epoch-5/process');
    expect(nameAt(next, 'free')).toBe('epoch-N+1/process');
  });
});

test('bindings of N are combined only if they do not contradict each other', () => {
  expect(joinBindings('free', '2')).toBe('2');
  expect(joinBindings('2', 'free')).toBe('2');
  expect(joinBindings('2', '2')).toBe('2');
  expect(joinBindings('2', '3')).toBeUndefined();
  expect(joinBindings(undefined, 'free')).toBeUndefined();
});
