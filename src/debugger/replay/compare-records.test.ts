import { describe, expect, test } from 'vitest';
import type { TracedEvent, TraceRecord } from '../../runtime/trace/trace.ts';
import { differingField } from './compare-records.ts';

const event = (payload: object, extraFields: object = {}): TraceRecord => ({
  seq: 7,
  t: 1,
  kind: 'event',
  from: 'a',
  to: 'b',
  event: { type: 'x', ...payload } as TracedEvent,
  ...extraFields,
});

const differenceOf = (recordedFields: object, replayedFields: object): string | undefined =>
  differingField(event(recordedFields), event(replayedFields));

test('the comparison of records ignores numbers, times, causes and taken transitions', () => {
  expect(differingField(event({}), event({}, { seq: 8, t: 2, cause: 3 }))).toBeUndefined();
  const step = { seq: 1, t: 1, kind: 'step', actor: 'a', on: 'x' } as const;
  expect(differingField({ ...step, taken: [1] }, { ...step, taken: [2] })).toBeUndefined();
});

test('the comparison of records returns the first field that differs', () => {
  expect(differenceOf({ list: [{ a: 1 }, { a: 2 }] }, { list: [{ a: 1 }, { a: 3 }] })).toBe('/event/list/1/a');
  expect(differenceOf({ list: [1] }, { list: [1, 2] })).toBe('/event/list/1');
  expect(differenceOf({ 'a/b': 1 }, {})).toBe('/event/a~1b');
  expect(differingField(event({}), { seq: 7, t: 1, kind: 'timer', actor: 'b', timer: 'x' })).toBe('/kind');
});

test('the comparison of records treats values that JSON cannot represent as JSON does', () => {
  expect(differenceOf({ list: [null], number: null }, { list: [undefined], number: Number.NaN })).toBeUndefined();
  expect(differenceOf({}, { gone: undefined })).toBeUndefined();
  expect(differenceOf({ number: 0 }, { number: null })).toBe('/event/number');
});

test('the comparison of records ignores the order of context changes', () => {
  const step = (...change: { path: string; value?: unknown }[]): TraceRecord => ({
    ...{ seq: 1, t: 1, kind: 'step', actor: 'a', on: 'x' },
    change,
  });
  const [first, secondTrace] = [
    { path: '/a', value: 1 },
    { path: '/b', value: 2 },
  ] as const;
  expect(differingField(step(first, secondTrace), step(secondTrace, first))).toBeUndefined();
  expect(differingField(step(first, secondTrace), step(first))).toBe('/change/b');
  expect(differingField(step(first), step(first, secondTrace))).toBe('/change/b');
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
  ])('treats omitted data as equal to any value: %j equals %j', (recordedValue, replayedValue) => {
    expect(differenceOf({ value: recordedValue }, { value: replayedValue })).toBeUndefined();
  });

  test.each([
    ['user [redacted] at home.', 'user me at work.'],
    ['abc… (3000 characters)', 'abd'],
    ['a[redacted]a', 'a'],
    ['plain', 'other'],
  ])('compares the text that is not omitted: %j differs from %j', (recordedValue, replayedValue) => {
    expect(differenceOf({ value: recordedValue }, { value: replayedValue })).toBe('/event/value');
  });

  test('compares a truncated list up to its last recorded item', () => {
    const recordedList = { list: [1, 2, '… (20 items)'] };
    expect(differenceOf(recordedList, { list: [1, 2, 3, 4] })).toBeUndefined();
    expect(differenceOf(recordedList, { list: [1, 3, 3, 4] })).toBe('/event/list/1');
    expect(differenceOf(recordedList, { list: [1] })).toBe('/event/list/1');
  });
});
