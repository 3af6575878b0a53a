/**
 * Validates regular expressions in Envoy's RE2 syntax (https://github.com/google/re2/wiki/Syntax), over bytes. Uses RE2JS, a port of RE2 that is
 * loaded on first use.
 */

import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import * as E from 'fp-ts/lib/Either.js';
import type { RE2JS } from 're2js';
import { bytesOf, textOf, translateToRe2js } from './re2-dialect.ts';
import * as violation from './violation.ts';

const maxLength = 1024;
/** Value of `re2.max_program_size.error_level` in the agent's bootstrap. */
const maxProgramSize = 32_768;

/** Fast path: letters, digits, dots and simple classes with optional repetition are always valid. */
const plainPattern =
  /^\^?(?:(?:[\w/ ~!@%&=:;,'"<>-]|\\[dswDSW./\-+*?()[\]{}^$|]|\.|\[\^?(?:a-z|A-Z|0-9|[\w/.:])+-?\])(?:[*+?]\??)?)*\$?$/;

export function re2Violation(regex: string, maxCharacters = maxLength): violation.FieldViolation | undefined {
  if (regex === '') return violation.emptyValue();
  if (regex.length > maxCharacters) return violation.tooLarge(maxCharacters, regex.length);
  return plainPattern.test(regex) ? undefined : composedRe2Violation(regex);
}

/** Validates an expression that is composed of valid expressions. A `\Q` may quote the expressions that follow it, and the total may be too large. */
export function composedRe2Violation(regex: string): violation.FieldViolation | undefined {
  if (!violations.has(regex)) {
    if (violations.size >= maxCached) violations.clear();
    violations.set(regex, violationOf(regex));
  }
  return violations.get(regex);
}

/** Cached, because objects are decoded again whenever their file is saved. */
const violations = new Map<string, violation.FieldViolation | undefined>();
const maxCached = 10_000;

function violationOf(regex: string): violation.FieldViolation | undefined {
  const compiledPattern = compile(regex);
  if (E.isLeft(compiledPattern)) return violation.mustBe('an RE2 expression', regex, { hint: compiledPattern.left });
  const size = maxInstructions(compiledPattern.right);
  return size > maxProgramSize
    ? violation.tooLarge(maxProgramSize, size, 'RE2 instructions, the limit of Envoy')
    : undefined;
}

export interface Re2Expression {
  matches(text: string): boolean;
  hasMatchIn(text: string): boolean;
  readonly groupCount: number;
}

/** @throws Error for an expression that {@link re2Violation} rejects */
export function re2Expression(regex: string): Re2Expression {
  const compiledPattern = compile(regex);
  if (E.isLeft(compiledPattern))
    throw new Error(`${JSON.stringify(regex)} is not an RE2 expression: ${compiledPattern.left}`);
  const { right } = compiledPattern;
  return {
    matches: (text) => right.testExact(bytesOf(text)),
    hasMatchIn: (text) => right.test(bytesOf(text)),
    groupCount: right.groupCount(),
  };
}

function compile(regex: string): E.Either<string, RE2JS> {
  const translatedPattern = translateToRe2js(bytesOf(regex));
  if (E.isLeft(translatedPattern)) return E.left(textOf(translatedPattern.left));
  const { RE2JS, RE2JSSyntaxException } = loadLibrary();
  try {
    return E.right(RE2JS.compile(translatedPattern.right));
  } catch (error) {
    if (!(error instanceof RE2JSSyntaxException)) throw error;
    return E.left(reasonOf(error.getDescription(), error.getPattern() ?? ''));
  }
}

function reasonOf(description: string, syntaxText: string): string {
  if (/^\(\?<?[=!]/.test(syntaxText)) return 'RE2 has no lookahead or lookbehind';
  if (/^\\[1-9gk]/.test(syntaxText)) return 'RE2 has no backreferences';
  if (description === 'invalid repeat count' && !isReversedRange(syntaxText)) {
    return `${syntaxText} repeats more than 1,000 times, nested repetitions included`;
  }
  return syntaxText === '' ? description : `${description}: ${textOf(syntaxText)}`;
}

function isReversedRange(repetition: string): boolean {
  const [, minCount, maxCount] = /^\{(\d+),(\d+)\}$/.exec(repetition) ?? [];
  return Number(minCount) > Number(maxCount);
}

let loadedLibrary: typeof import('re2js') | undefined;

function loadLibrary(): typeof import('re2js') {
  if (loadedLibrary === undefined) {
    const isBuilt = existsSync(new URL('re2js.cjs', import.meta.url));
    loadedLibrary = createRequire(import.meta.url)(isBuilt ? './re2js.cjs' : 're2js') as typeof import('re2js');
  }
  return loadedLibrary;
}

interface Instruction {
  /** Instruction code; the instructions 1 and 2 have two successors. */
  readonly op: number;
  readonly runes?: ArrayLike<number>;
}

/**
 * Upper bound of the instructions that Envoy's RE2 needs: one per byte range, and up to two more than RE2JS for repeating a possibly empty
 * expression. (`programSize()` of RE2JS counts one for all ranges of a class.)
 */
function maxInstructions(expression: RE2JS): number {
  const instructions = expression.re2().prog.inst as readonly Instruction[];
  return instructions.reduce((size, { op, runes = [] }) => {
    const branches = op === 1 || op === 2 ? 2 : 0;
    return size + branches + Math.max(1, rangesOfBytes(runes));
  }, 0);
}

function rangesOfBytes(runes: ArrayLike<number>): number {
  let ranges = 0;
  for (let runeIndex = 0; runeIndex + 1 < runes.length; runeIndex += 2) if (runes[runeIndex]! <= 0xff) ranges++;
  return ranges;
}
