/**
 * Validates CEL (Common Expression Language) expressions as Envoy 1.40 evaluates them for access logs, because Envoy rejects a complete listener if
 * it cannot build an expression. Measured with Envoy: macros over lists (`exists`, `map`, …) are disabled,
 * functions must be known with their number of arguments, a literal pattern of `matches` must be valid.
 */

import { re2Violation } from '../re2.ts';
import * as violation from '../violation.ts';
import { type CelToken, tokensOf } from './tokens.ts';

/** Numbers of arguments by function, called as a method (`a.f(x)`) and by name (`f(x)`). */
const functions: Readonly<
  Record<string, { readonly onValue?: readonly number[]; readonly byName?: readonly number[] }>
> = {
  size: { onValue: [0], byName: [1] },
  startsWith: { onValue: [1] },
  endsWith: { onValue: [1] },
  contains: { onValue: [1], byName: [2] },
  matches: { onValue: [1], byName: [2] },
  ...Object.fromEntries(
    ['int', 'uint', 'double', 'bool', 'bytes', 'timestamp', 'duration', 'type', 'dyn'].map((name) => [
      name,
      { byName: [1] },
    ]),
  ),
  ...Object.fromEntries(
    [
      ...['getFullYear', 'getMonth', 'getDate', 'getDayOfMonth', 'getDayOfWeek', 'getDayOfYear', 'getHours'],
      ...['getMinutes', 'getSeconds', 'getMilliseconds'],
    ].map((name) => [name, { onValue: [0, 1] }]),
  ),
};

const macros: ReadonlySet<string> = new Set(['all', 'exists', 'exists_one', 'filter', 'map']);

const reservedWords: ReadonlySet<string> = new Set([
  ...['as', 'break', 'const', 'continue', 'else', 'for', 'function', 'if', 'import', 'let', 'loop', 'package'],
  ...['namespace', 'return', 'var', 'void', 'while'],
]);

/** Deeper than real expressions, and than Envoy's own limit. */
const maxDepth = 200;

class CelError extends Error {}

export function celViolation(text: string): violation.FieldViolation | undefined {
  const tokens = tokensOf(text);
  if (typeof tokens === 'string') return violation.mustBe('a CEL expression', text, { hint: tokens });
  try {
    new ExpressionReader(tokens).parseComplete();
    return undefined;
  } catch (error) {
    if (!(error instanceof CelError)) throw error;
    return violation.mustBe('a CEL expression', text, { hint: error.message });
  }
}

type ExpressionShape = 'field' | 'other';

class ExpressionReader {
  readonly #tokens: readonly CelToken[];
  #tokenIndex = 0;
  #depth = 0;

  constructor(tokens: readonly CelToken[]) {
    this.#tokens = tokens;
  }

  parseComplete(): void {
    this.#readExpression();
    if (this.#nextToken !== undefined) this.#throwUnexpected();
  }

  get #nextToken(): CelToken | undefined {
    return this.#tokens[this.#tokenIndex];
  }

  #isNextTokenIn(...texts: readonly string[]): boolean {
    const { kind, text } = this.#nextToken ?? { kind: 'end', text: '' };
    return (kind === 'sign' || (kind === 'name' && text === 'in')) && texts.includes(text);
  }

  #consumeToken(...texts: readonly string[]): boolean {
    if (!this.#isNextTokenIn(...texts)) return false;
    this.#tokenIndex++;
    return true;
  }

  #expectText(text: string): void {
    if (!this.#consumeToken(text)) this.#throwUnexpected(`expected ${text}`);
  }

  #throwUnexpected(position = ''): never {
    const unexpectedText =
      this.#nextToken === undefined ? 'unexpected end' : `unexpected ${JSON.stringify(this.#nextToken.text)}`;
    throw new CelError(position === '' ? unexpectedText : `${unexpectedText}, ${position}`);
  }

  #readExpression(): ExpressionShape {
    if (++this.#depth > maxDepth) throw new CelError(`nested deeper than ${maxDepth} levels`);
    const shape = this.#readOperands(0);
    if (this.#consumeToken('?')) {
      this.#readOperands(0);
      this.#expectText(':');
      this.#readExpression();
      this.#depth--;
      return 'other';
    }
    this.#depth--;
    return shape;
  }

  static readonly #levels = [['||'], ['&&'], ['<', '<=', '>=', '>', '==', '!=', 'in'], ['+', '-'], ['*', '/', '%']];

  #readOperands(level: number): ExpressionShape {
    const operators = ExpressionReader.#levels[level];
    if (operators === undefined) return this.#readUnary();
    let shape = this.#readOperands(level + 1);
    while (this.#consumeToken(...operators)) {
      this.#readOperands(level + 1);
      shape = 'other';
    }
    return shape;
  }

  #readUnary(): ExpressionShape {
    const operator = this.#isNextTokenIn('!') ? '!' : '-';
    if (!this.#isNextTokenIn(operator)) return this.#readMember();
    // A minus directly before a number belongs to the number.
    while (
      this.#isNextTokenIn(operator) &&
      !(operator === '-' && this.#tokens[this.#tokenIndex + 1]?.kind === 'literal')
    )
      this.#tokenIndex++;
    this.#readMember();
    return 'other';
  }

  #readMember(): ExpressionShape {
    let shape = this.#readPrimary();
    for (;;) {
      if (this.#consumeToken('[')) {
        this.#readExpression();
        this.#expectText(']');
        shape = 'other';
      } else if (this.#consumeToken('.')) {
        const name = this.#readName(true);
        shape = this.#isNextTokenIn('(') ? this.#readCall(name, 'onValue') : 'field';
      } else {
        if (this.#isNextTokenIn('{')) throw new CelError('message construction is not supported by Envoy');
        return shape;
      }
    }
  }

  #readPrimary(): ExpressionShape {
    const token = this.#nextToken;
    if (token === undefined) this.#throwUnexpected();
    const isNegative = this.#isNextTokenIn('-') && this.#tokens[this.#tokenIndex + 1]?.kind === 'literal';
    if (isNegative) this.#tokenIndex++;
    if (this.#nextToken?.kind === 'literal') {
      if (isTooLarge(this.#nextToken.text, isNegative))
        throw new CelError(`the number ${this.#nextToken.text} exceeds 64 bits`);
      this.#tokenIndex++;
      return 'other';
    }
    if (this.#consumeToken('(')) {
      const shape = this.#readExpression();
      this.#expectText(')');
      return shape;
    }
    if (this.#consumeToken('[')) return this.#readItems(']');
    if (this.#consumeToken('{')) return this.#readEntries();
    this.#consumeToken('.');
    const name = this.#readName();
    return this.#isNextTokenIn('(') ? this.#readCall(name, 'byName') : 'other';
  }

  #readName(isField = false): string {
    const token = this.#nextToken;
    if (token?.kind !== 'name' || token.text === 'in') this.#throwUnexpected('expected a name');
    if (!isField && reservedWords.has(token.text)) throw new CelError(`${token.text} is a reserved word`);
    this.#tokenIndex++;
    return token.text;
  }

  #readItems(end: ')' | ']'): ExpressionShape {
    while (!this.#consumeToken(end)) {
      this.#readExpression();
      if (!this.#consumeToken(',') && !this.#isNextTokenIn(end)) this.#throwUnexpected(`expected ${end}`);
    }
    return 'other';
  }

  #readEntries(): ExpressionShape {
    while (!this.#consumeToken('}')) {
      this.#readExpression();
      this.#expectText(':');
      this.#readExpression();
      if (!this.#consumeToken(',') && !this.#isNextTokenIn('}')) this.#throwUnexpected('expected }');
    }
    return 'other';
  }

  #readCall(name: string, form: 'onValue' | 'byName'): ExpressionShape {
    this.#expectText('(');
    const firstIndex = this.#tokenIndex;
    const shapes: ExpressionShape[] = [];
    if (!this.#consumeToken(')')) {
      do shapes.push(this.#readExpression());
      while (this.#consumeToken(','));
      this.#expectText(')');
    }
    if (form === 'byName' && name === 'has') {
      if (shapes.length !== 1 || shapes[0] !== 'field') throw new CelError('the argument of has() must be a field');
      return 'other';
    }
    if (form === 'onValue' && macros.has(name)) throw new CelError(`${name}() is not supported by Envoy`);
    const counts = Object.hasOwn(functions, name) ? (functions[name]![form] ?? []) : [];
    if (!counts.includes(shapes.length))
      throw new CelError(`${name}() with ${shapes.length} arguments is not a function of Envoy`);
    if (name === 'matches') this.#checkPattern(form === 'onValue' ? firstIndex : undefined);
    return 'other';
  }

  /** @param firstIndex index of the argument's first token, if the call has a single argument */
  #checkPattern(firstIndex: number | undefined): void {
    // A literal pattern is the last token before the parenthesis, as in `(pattern)` or `value, pattern)`.
    const tokenIndex = this.#tokenIndex - 2;
    const token = this.#tokens[tokenIndex];
    const isSingle = firstIndex === undefined ? this.#tokens[tokenIndex - 1]?.text === ',' : tokenIndex === firstIndex;
    if (!isSingle || token?.kind !== 'literal' || token.string === undefined) return;
    const patternError = re2Violation(token.string);
    if (patternError !== undefined) throw new CelError(`the pattern of matches() ${patternError.message}`);
  }
}

/** Integers have 64 bits. */
function isTooLarge(literal: string, isNegative: boolean): boolean {
  const [, digits, unsignedSuffix] = /^(0x[0-9a-fA-F]+|\d+)([uU]?)$/.exec(literal) ?? [];
  if (digits === undefined) return false;
  const maxValue = unsignedSuffix ? 2n ** 64n - 1n : 2n ** 63n - (isNegative ? 0n : 1n);
  return BigInt(digits) > maxValue;
}
