import { expect, it } from 'vitest';
import { requestPrincipalMatchers } from './claim-matchers.ts';

/** Returns `iss=… sub=…` for each alternative. `~` at the end marks a prefix match, `~` at the start a suffix match. */
function alternatives(principal: string): string[] {
  return requestPrincipalMatchers(principal).map((matchers) =>
    matchers
      .map(({ path, value }) => {
        const key = path!.at(-1)!.segment!.value;
        const pattern = (value!.matchPattern as { value: { matchPattern: { case: string; value: unknown } } }).value;
        const { case: matchKind, value: text } = pattern.matchPattern;
        if (matchKind === 'safeRegex') return `${key}=any`;
        return `${key}=${matchKind === 'suffix' ? '~' : ''}${text}${matchKind === 'prefix' ? '~' : ''}`;
      })
      .join(' '),
  );
}

it('a request principal is split at each slash, because issuers and subjects can contain slashes', () => {
  expect(alternatives('https://id/a')).toEqual([
    'iss=https: sub=/id/a',
    'iss=https:/ sub=id/a',
    'iss=https://id sub=a',
  ]);
});

it('a request principal "*" requires an issuer and a subject', () => {
  expect(alternatives('*')).toEqual(['iss=any sub=any']);
});

it('a prefix matches the start of the issuer, or an issuer and the start of the subject', () => {
  expect(alternatives('id/*')).toEqual(['iss=id/~ sub=any', 'iss=id sub=any']);
  expect(alternatives('id/a*')).toEqual(['iss=id/a~ sub=any', 'iss=id sub=a~']);
});

it('a suffix matches the end of the subject, or the end of an issuer and a subject', () => {
  expect(alternatives('*/a')).toEqual(['iss=any sub=~/a', 'iss=any sub=a']);
  expect(alternatives('*d/a')).toEqual(['iss=any sub=~d/a', 'iss=~d sub=a']);
});

it('a request principal without a slash never matches', () => {
  expect(alternatives('user')).toEqual([]);
});
