import { expect, test } from 'vitest';
import { fillTemplate, matchesConditions } from './mark-text.ts';

const fields = { type: 'x', how: 'cold start', attempt: 2, list: ['a'], problems: [{ message: 'no key' }], none: null };

test.each([
  ['{how} of {type}', 'cold start of x'],
  ['{reason|problems.0.message}', 'no key'],
  ['{how|type}', 'cold start'],
  ['{list:object} and {none:object}', '1 object and 0 objects'],
  ['{nothing} {none} {constructor} {how.length}', 'unknown unknown unknown unknown'],
  ['{} {', '{} {'],
])('filled replaces placeholders: %j becomes %j', (template, text) => {
  expect(fillTemplate(template, fields)).toBe(text);
});

test('filled limits the length of a text that contains a long field', () => {
  expect(fillTemplate('{how}', { how: 'a'.repeat(100_000) })).toHaveLength(300);
});

test.each([
  [{}, true],
  [{ when: { how: 'cold start' } }, true],
  [{ when: { how: 'hot' } }, false],
  [{ above: { attempt: 1 } }, true],
  [{ above: { attempt: 2 } }, false],
  [{ above: { how: 0 } }, false],
])('matchesConditions evaluates the conditions %j as %j', (conditions, expected) => {
  expect(matchesConditions({ kind: 'change', text: '', ...conditions }, fields)).toBe(expected);
});
