import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Fragment } from './diagram.ts';
import { namePattern } from './name-pattern.ts';
import { nextArrows, type Term, TermPool } from './term.ts';

const letters = ['a', 'b', 'c', 'd', 'e', 'f'];
const actor = namePattern('x')!;
const arrow = (type: string, line = 1): Fragment => ({ kind: 'arrow', from: actor, to: actor, type, line });
const sequence = (...items: Fragment[]): Fragment => ({ kind: 'sequence', items });
const alt = (...branches: Fragment[]): Fragment => ({ kind: 'alt', branches });
const par = (...branches: Fragment[]): Fragment => ({ kind: 'par', branches });
const opt = (body: Fragment): Fragment => ({ kind: 'opt', body });
const loop = (body: Fragment): Fragment => ({ kind: 'loop', body });
const [a, b, c, d] = letters.map((letter, i) => arrow(letter, i + 1)) as [Fragment, Fragment, Fragment, Fragment];

/** The set of terms after a word with one letter per message. */
function run(fragment: Fragment, letterWord: string): { left: ReadonlySet<Term>; pool: TermPool } {
  const pool = new TermPool();
  let remainingTerms: ReadonlySet<Term> = new Set([pool.fromFragment(fragment, ({ type }) => letters.indexOf(type))]);
  for (const letter of letterWord) {
    remainingTerms = new Set(
      [...remainingTerms].flatMap((term) => [...pool.continuationsAfter(term, new Set([letters.indexOf(letter)]))]),
    );
  }
  return { left: remainingTerms, pool };
}

/**
 * `no`: refused; `open`: more messages must follow; `may end`: more messages may follow; `over`: no message can follow.
 */
function acceptanceOf(fragment: Fragment, letterWord: string): 'no' | 'open' | 'may end' | 'over' {
  const { left, pool } = run(fragment, letterWord);
  if (left.size === 0) return 'no';
  if ([...left].every((term) => term === pool.empty)) return 'over';
  return [...left].some((term) => term.optional) ? 'may end' : 'open';
}

describe('the terms of a diagram', () => {
  test.each<[string, Fragment, [string, string][]]>([
    [
      'keep the order of a sequence',
      sequence(a, b),
      [
        ['', 'open'],
        ['a', 'open'],
        ['ab', 'over'],
        ['b', 'no'],
        ['aba', 'no'],
      ],
    ],
    [
      'allow one branch of an alt',
      alt(sequence(a, b), sequence(a, c)),
      [
        ['ab', 'over'],
        ['ac', 'over'],
        ['abc', 'no'],
      ],
    ],
    [
      'may omit an opt',
      sequence(a, opt(b), c),
      [
        ['abc', 'over'],
        ['ac', 'over'],
        ['abbc', 'no'],
      ],
    ],
    [
      'may end before an opt at the end',
      sequence(a, opt(b)),
      [
        ['a', 'may end'],
        ['ab', 'over'],
      ],
    ],
    [
      'repeat a loop zero or more times',
      sequence(loop(a), b),
      [
        ['b', 'over'],
        ['aaab', 'over'],
        ['', 'open'],
      ],
    ],
    [
      'repeat a loop at the end without limit',
      loop(sequence(a, b)),
      [
        ['', 'may end'],
        ['a', 'open'],
        ['abab', 'may end'],
      ],
    ],
    [
      'interleave the branches of a par',
      par(sequence(a, b), c),
      [
        ['abc', 'over'],
        ['acb', 'over'],
        ['cab', 'over'],
        ['bac', 'no'],
        ['ab', 'open'],
      ],
    ],
    [
      'count equal branches of a par',
      par(a, a),
      [
        ['a', 'open'],
        ['aa', 'over'],
        ['aaa', 'no'],
      ],
    ],
    [
      'nest blocks',
      loop(alt(par(a, opt(sequence(b, loop(c)))), d)),
      [
        ['bccca', 'may end'],
        ['bacccd', 'may end'],
        ['dda', 'may end'],
        ['ca', 'no'],
        ['bc', 'open'],
      ],
    ],
  ])('%s', (_, fragment, acceptances) => {
    expect(acceptances.map(([word]) => [word, acceptanceOf(fragment, word)])).toEqual(acceptances);
  });

  test('list the next messages by line', () => {
    const { left } = run(sequence(a, par(b, opt(c)), d), 'a');
    expect([...left].flatMap(nextArrows)).toEqual([
      { symbol: 1, line: 2 },
      { symbol: 2, line: 3 },
    ]);
  });

  test('include every later position after a missed message', () => {
    const pool = new TermPool();
    const term = pool.fromFragment(sequence(a, b, alt(c, d)), ({ type }) => letters.indexOf(type));
    const termsAfter = (letter: string) => [...pool.afterSkipping(term, new Set([letters.indexOf(letter)]))];
    expect(
      termsAfter('b')
        .flatMap(nextArrows)
        .map(({ line }) => line),
    ).toEqual([3, 4]);
    expect(termsAfter('d')).toEqual([pool.empty]);
    expect(termsAfter('e')).toEqual([]);
  });

  test('are computed quickly for interleaved loops of alternatives', () => {
    const { left } = run(par(loop(alt(a, b)), loop(sequence(opt(c), d))), 'abcdabdcabd'.repeat(20));
    expect(left.size).toBeLessThanOrEqual(2);
  });
});

const maxLetters = 4;

/** A short word, or the first letters of a longer one and an ellipsis. */
const cutWord = (word: string): string => (word.length > maxLetters ? `${word.slice(0, maxLetters)}…` : word);

/** All words of a fragment, with long ones cut: an independent implementation of the meaning of a diagram. */
function wordsOf(fragment: Fragment): Set<string> {
  switch (fragment.kind) {
    case 'arrow':
      return new Set([fragment.type]);
    case 'sequence':
      return fragment.items.map(wordsOf).reduce(concatenations, new Set(['']));
    case 'alt':
      return new Set(fragment.branches.flatMap((branch) => [...wordsOf(branch)]));
    case 'opt':
      return new Set(['', ...wordsOf(fragment.body)]);
    case 'loop': {
      const runs = new Set(['', ...wordsOf(fragment.body)]);
      // More repetitions do not change the first letters.
      return Array.from({ length: maxLetters + 1 }, () => runs).reduce(concatenations, new Set(['']));
    }
    case 'par':
      return fragment.branches.map(wordsOf).reduce(shuffles, new Set(['']));
  }
}

function concatenations(first: Set<string>, second: Set<string>): Set<string> {
  return new Set([...first].flatMap((x) => (x.endsWith('…') ? [x] : [...second].map((y) => cutWord(x + y)))));
}

function shuffles(first: Set<string>, second: Set<string>): Set<string> {
  return new Set([...first].flatMap((x) => [...second].flatMap((y) => shuffle(x, y).map(cutWord))));
}

function shuffle(x: string, y: string): string[] {
  if (x === '' || y === '') return [x + y];
  return [...shuffle(x.slice(1), y).map((rest) => x[0]! + rest), ...shuffle(x, y.slice(1)).map((rest) => y[0]! + rest)];
}

const { anyFragment } = fc.letrec<{ anyFragment: Fragment }>((tie) => {
  const fewFragments = fc.array(tie('anyFragment'), { minLength: 1, maxLength: 3 });
  const twoFragments = fc.array(tie('anyFragment'), { minLength: 2, maxLength: 2 });
  return {
    anyFragment: fc.oneof(
      { maxDepth: 3, withCrossShrink: true },
      fc.constantFrom(...letters.slice(0, 3)).map((letter) => arrow(letter)),
      fewFragments.map((items) => sequence(...items)),
      twoFragments.map((branches) => alt(...branches)),
      twoFragments.map((branches) => par(...branches)),
      tie('anyFragment').map(opt),
      tie('anyFragment').map(loop),
    ),
  };
});

test('a term accepts exactly the prefixes of the words of its diagram, and is optional exactly after complete words', () => {
  const word = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: maxLetters });
  fc.assert(
    fc.property(anyFragment, fc.array(word, { minLength: 10, maxLength: 10 }), (fragment, texts) => {
      const fragmentWords = wordsOf(fragment);
      for (const text of texts) {
        const { left } = run(fragment, text);
        expect(left.size > 0).toBe([...fragmentWords].some((candidate) => candidate.startsWith(text)));
        expect([...left].some((term) => term.optional)).toBe(fragmentWords.has(text));
      }
    }),
    { numRuns: 300 },
  );
});

test('the continuation of a diagram from an unknown position is the union of the continuations from all positions', () => {
  const word = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: maxLetters });
  fc.assert(
    fc.property(anyFragment, fc.array(word, { minLength: 10, maxLength: 10 }), (fragment, texts) => {
      const pool = new TermPool();
      const start = pool.fromFragment(fragment, ({ type }) => letters.indexOf(type));
      const symbols = letters.map((_, i) => new Set([i]));
      const reachableTerms = new Set([start]);
      for (const reachableTerm of reachableTerms) {
        fc.pre(reachableTerms.size < 200);
        for (const symbol of symbols)
          for (const nextTerm of pool.continuationsAfter(reachableTerm, symbol)) reachableTerms.add(nextTerm);
      }
      const termsAfterText = (startTerms: Iterable<Term>, text: string): Term[] =>
        [...text].reduce<Term[]>(
          (terms, letter) => [
            ...new Set(terms.flatMap((term) => [...pool.continuationsAfter(term, symbols[letters.indexOf(letter)]!)])),
          ],
          [...startTerms],
        );
      for (const text of texts) {
        const [restTerms, anywhere] = [
          termsAfterText([pool.firstRemainder(start)], text),
          termsAfterText(reachableTerms, text),
        ];
        expect(restTerms.length > 0).toBe(anywhere.length > 0);
        expect(restTerms.some((term) => term.optional)).toBe(anywhere.some((term) => term.optional));
      }
      expect(pool.firstRemainder(start).optional).toBe(true);
    }),
    { numRuns: 300 },
  );
});
