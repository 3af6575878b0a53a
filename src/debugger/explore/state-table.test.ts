import { describe, expect, test } from 'vitest';
import { LocalStateTable, SharedStateTable } from './state-table.ts';

describe.each([
  ['of one thread', () => new LocalStateTable()],
  ['that threads share', () => new SharedStateTable(1_000)],
])('a table of states %s', (_, createTable) => {
  test('numbers states in order of their first visit and recognizes them again', () => {
    const states = createTable();
    expect(states.claim('a')).toEqual({ state: 0, isNew: true });
    expect(states.claim('b')).toEqual({ state: 1, isNew: true });
    expect(states.claim('a')).toEqual({ state: 0, isNew: false });
    expect(states.size).toBe(2);
  });

  test('distinguishes many states', () => {
    const states = createTable();
    const keys = Array.from({ length: 1_000 }, (_, i) => `state ${i}`);
    expect(keys.map((key) => states.claim(key).state)).toEqual(keys.map((_, i) => i));
    expect(keys.every((key, i) => states.claim(key).state === i)).toBe(true);
  });
});

describe('a state table that threads share', () => {
  test('has the same content for all threads that use its memory', () => {
    const firstTable = new SharedStateTable(100);
    const secondTable = new SharedStateTable(firstTable.buffer);
    expect(firstTable.claim('a')).toEqual({ state: 0, isNew: true });
    expect(secondTable.claim('a')).toEqual({ state: 0, isNew: false });
    expect(secondTable.claim('b').isNew).toBe(true);
    expect(firstTable.size).toBe(2);
  });

  test('throws an error when it is full', () => {
    const states = new SharedStateTable(4);
    expect(() => {
      for (let i = 0; i < 10; i++) states.claim(`state ${i}`);
    }).toThrow('do not fit in memory');
  });
});
