import { expect, it } from 'vitest';
import { cachedFunction } from './cached-function.ts';

it('a cached function computes each result once, including undefined', () => {
  const computed: string[] = [];
  const length = cachedFunction((text) => {
    computed.push(text);
    return text === '' ? undefined : text.length;
  });
  expect([length('ab'), length(''), length('ab'), length('')]).toEqual([2, undefined, 2, undefined]);
  expect(computed).toEqual(['ab', '']);
});

it('a cached function drops its results when their number reaches the limit', () => {
  const computed: string[] = [];
  const cachedIdentity = cachedFunction((text) => {
    computed.push(text);
    return text;
  }, 2);
  for (const text of ['a', 'b', 'a', 'c', 'a']) cachedIdentity(text);
  expect(computed).toEqual(['a', 'b', 'c', 'a']);
});
