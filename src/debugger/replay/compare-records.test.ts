import { describe, expect, test } from 'vitest';
import type { TracedEvent, TraceRecord } from '../../runtime/trace/trace.ts';
import { differingField } from './compare-records.ts';

const event = (payload: object, more: object = {}): TraceRecord => ({
  seq: 7,
  t: 1,
  kind: 'event',
  from: 'a',
  to: 'b',
  event: { type: 'x', ...payload } as TracedEvent,
  ...more,
});

const differing = (recorded: object, replayed: object): string | undefined =>
  differingField(event(recorded), event(replayed));

test('the comparison of records ignores numbers, times, causes and taken transitions', () => {
  expect(differingField(event({}), event({}, { seq: 8, t: 2, cause: 3 }))).toBeUndefined();
  const step = { seq: 1, t: 1, kind: 'step', actor: 'a', on: 'x' } as const;
  expect(differingField({ ...step, taken: [1] }, { ...step, taken: [2] })).toBeUndefined();
});

test('the comparison of records returns the first field that differs', () => {
  expect(differing({ list: [{ a: 1 }, { a: 2 }] }, { list: [{ a: 1 }, { a: 3 }] })).toBe('/event/list/1/a');
  expect(differing({ list: [1] }, { list: [1, 2] })).toBe('/event/list/1');
  expect(differing({ 'a/b': 1 }, {})).toBe('/event/a~1b');
  expect(differingField(event({}), { seq: 7, t: 1, kind: 'timer', actor: 'b', timer: 'x' })).toBe('/kind');
});

test('the comparison of records treats values that JSON cannot represent as JSON does', () => {
  expect(differing({ list: [null], number: null }, { list: [undefined], number: Number.NaN })).toBeUndefined();
  expect(differing({}, { gone: undefined })).toBeUndefined();
  expect(differing({ number: 0 }, { number: null })).toBe('/event/number');
});

test('the comparison of records ignores the order of context changes', () => {
  const step = (...change: { path: string; value?: unknown }[]): TraceRecord => ({
    ...{ seq: 1, t: 1, kind: 'step', actor: 'a', on: 'x' },
    change,
  });
  const [first, second] = [
    { path: '/a', value: 1 },
    { path: '/b', value: 2 },
  ] as const;
  expect(differingField(step(first, second), step(second, first))).toBeUndefined();
  expect(differingField(step(first, second), step(first))).toBe('/change/b');
  expect(differingField(step(first), step(first, second))).toBe('/change/b');
  expect(differingField(step(first), step({ path: '/a', value: 3 }))).toBe('/change/a');
});

describe('comparison of omitted data', () => {
  test.each([
    ['[redacted]', 'hunter2'],
    ['[redacted]', 17],
    ['user [redacted] at [redacted].', 'user me at home.'],
    ['[deep]', { a: 1 }],
    ['abc… (3000 characters)', 'abcdef'],
    ['a [redacted] b… (3000 characters)', 'a secret be'],
  ])('treats omitted data as equal to any value (%s): %s', (recorded, replayed) => {
    expect(differing({ value: recorded }, { value: replayed })).toBeUndefined();
  });

  test.each([
    ['user [redacted] at home.', 'user me at work.'],
    ['abc… (3000 characters)', 'abd'],
    ['a[redacted]a', 'a'],
    ['plain', 'other'],
  ])('does not ignore the remaining text of a value (%s): %s', (recorded, replayed) => {
    expect(differing({ value: recorded }, { value: replayed })).toBe('/event/value');
  });

  test('compares a truncated list up to its last recorded item', () => {
    const recorded = { list: [1, 2, '… (20 items)'] };
    expect(differing(recorded, { list: [1, 2, 3, 4] })).toBeUndefined();
    expect(differing(recorded, { list: [1, 3, 3, 4] })).toBe('/event/list/1');
    expect(differing(recorded, { list: [1] })).toBe('/event/list/1');
  });
});
