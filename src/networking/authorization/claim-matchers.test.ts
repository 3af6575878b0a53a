import { expect, it } from 'vitest';
import { requestPrincipalMatchers } from './claim-matchers.ts';

/** `iss=… sub=…` of each alternative; a `~` before a text that must only begin so, behind one that must only end so. */
function alternatives(principal: string): string[] {
  return requestPrincipalMatchers(principal).map((parts) =>
    parts
      .map(({ path, value }) => {
        const key = path!.at(-1)!.segment!.value;
        const pattern = (value!.matchPattern as { value: { matchPattern: { case: string; value: unknown } } }).value;
        const { case: how, value: text } = pattern.matchPattern;
        if (how === 'safeRegex') return `${key}=any`;
        return `${key}=${how === 'suffix' ? '~' : ''}${text}${how === 'prefix' ? '~' : ''}`;
      })
      .join(' '),
  );
}

it('a principal is taken apart at each of its slashes: issuers have some, and subjects may', () => {
  expect(alternatives('https://id/a')).toEqual([
    'iss=https: sub=/id/a',
    'iss=https:/ sub=id/a',
    'iss=https://id sub=a',
  ]);
});

it('any is an issuer and a subject', () => {
  expect(alternatives('*')).toEqual(['iss=any sub=any']);
});

it('one that only begins is a beginning of the issuer, or an issuer and a beginning of the subject', () => {
  expect(alternatives('id/*')).toEqual(['iss=id/~ sub=any', 'iss=id sub=any']);
  expect(alternatives('id/a*')).toEqual(['iss=id/a~ sub=any', 'iss=id sub=a~']);
});

it('one that only ends is the end of the subject, or the end of an issuer and a subject', () => {
  expect(alternatives('*/a')).toEqual(['iss=any sub=~/a', 'iss=any sub=a']);
  expect(alternatives('*d/a')).toEqual(['iss=any sub=~d/a', 'iss=~d sub=a']);
});

it('a text without a slash is nobody', () => {
  expect(alternatives('user')).toEqual([]);
});
