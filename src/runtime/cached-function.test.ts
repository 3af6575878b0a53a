import { expect, it } from 'vitest';
import { remembering } from './cached-function.ts';

it('a cached function computes each result once, including undefined', () => {
  const computed: string[] = [];
  const length = remembering((text) => {
    computed.push(text);
    return text === '' ? undefined : text.length;
  });
  expect([length('ab'), length(''), length('ab'), length('')]).toEqual([2, undefined, 2, undefined]);
  expect(computed).toEqual(['ab', '']);
});

it('a cached function drops its results at the limit', () => {
  const computed: string[] = [];
  const same = remembering((text) => {
    computed.push(text);
    return text;
  }, 2);
  for (const text of ['a', 'b', 'a', 'c', 'a']) same(text);
  expect(computed).toEqual(['a', 'b', 'c', 'a']);
});
