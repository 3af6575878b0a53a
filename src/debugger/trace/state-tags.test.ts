import { expect, test } from 'vitest';
import { StateTags } from './state-tags.ts';

const tags = new StateTags([
  {
    id: 'one',
    states: [
      { path: '', type: 'compound' },
      { path: 'open', parent: 0, type: 'compound', tags: ['serving'] },
      { path: 'open.late', parent: 1, type: 'atomic', tags: ['draining'] },
      { path: 'shut', parent: 0, type: 'atomic' },
    ],
    transitions: [],
  },
]);

test.each([
  ['open', ['serving']],
  ['open.late', ['serving', 'draining']],
  ['shut | open.late', ['serving', 'draining']],
  ['shut', []],
  ['', []],
  ['nowhere', []],
])('StateTags returns for the state %j the tags of the state and its ancestors: %j', (state, expected) => {
  expect([...tags.tagsOf('one', state)]).toEqual(expected);
});

test('StateTags returns the tags of states of a known machine, and none for an unknown machine', () => {
  expect([...tags.tagsOf('two', 'open')]).toEqual([]);
  expect(tags.tagsOf(undefined, 'open').size).toBe(0);
  expect(tags.isKnownTag('one', 'draining')).toBe(true);
  expect(tags.isKnownTag('one', 'ending')).toBe(false);
  expect(tags.isKnownTag('two', 'draining')).toBe(false);
});
