import { type Position, TemplateError } from './template-error.ts';

export type TokenKind =
  | 'text'
  | 'open'
  | 'close'
  | 'space'
  | 'identifier'
  | 'keyword'
  | 'bool'
  | 'dot'
  | 'field'
  | 'variable'
  | 'number'
  | 'char'
  | 'string'
  | 'rawString'
  | 'declare'
  | 'assign'
  | 'pipe'
  | 'paren('
  | 'paren)'
  | 'comma'
  | 'end';

export interface Token extends Position {
  readonly kind: TokenKind;
  readonly text: string;
}

const keywords = new Set([
  ...['break', 'continue', 'block', 'define', 'else', 'end', 'if', 'nil', 'range', 'template', 'with'],
]);

const opening = '{{';
/** Only these characters are trimmed; other Unicode white space is text. */
const trailingSpace = /[ \t\r\n]+$/;
const leadingSpace = /^[ \t\r\n]+/;
const closing = /(?:[ \t\r\n]-)?\}\}/y;
const wordEnd = /(?=[ \t\r\n.,|:()]|\}\}|$)/y;

const rules: readonly (readonly [TokenKind | 'word', RegExp])[] = [
  ['space', /(?:[ \t\r\n](?!-\}\}))+/y],
  ['declare', /:=/y],
  ['assign', /=/y],
  ['pipe', /\|/y],
  ['comma', /,/y],
  ['paren(', /\(/y],
  ['paren)', /\)/y],
  ['string', /"(?:[^"\\\n]|\\[^\n])*"/y],
  ['rawString', /`[^`]*`/y],
  ['char', /'(?:[^'\\\n]|\\[^\n])*'/y],
  ['field', /\.[\p{L}_][\p{L}\p{Nd}_]*/uy],
  [
    'number',
    /[+-]?(?=\.?\d)(?:0[xX][\da-fA-F_]*(?:\.[\da-fA-F_]*)?(?:[pP][+-]?[\d_]+)?|[\d_]*\.?[\d_]*(?:[eE][+-]?[\d_]+)?(?:[bBoO][\d_]+)?)/y,
  ],
  ['dot', /\./y],
  ['variable', /\$[\p{L}\p{Nd}_]*/uy],
  ['word', /[\p{L}_][\p{L}\p{Nd}_]*/uy],
];

const kindsBeforeBoundary: ReadonlySet<TokenKind | 'word'> = new Set(['field', 'dot', 'variable', 'word'] as const);

/** @throws TemplateError */
export function tokenize(template: string): Token[] {
  return new Lexer(template).run();
}

class Lexer {
  readonly #input: string;
  readonly #tokens: Token[] = [];
  readonly #lineStarts: readonly number[];
  #offset = 0;

  constructor(input: string) {
    this.#input = input;
    const starts = [0];
    for (let next = input.indexOf('\n'); next >= 0; next = input.indexOf('\n', next + 1)) starts.push(next + 1);
    this.#lineStarts = starts;
  }

  run(): Token[] {
    let trimsNextText = false;
    for (;;) {
      const openIndex = this.#input.indexOf(opening, this.#offset);
      const rawText = this.#input.slice(this.#offset, openIndex < 0 ? undefined : openIndex);
      const text = trimsNextText ? rawText.replace(leadingSpace, '') : rawText;
      const trimsBefore = openIndex >= 0 && /^-[ \t\r\n]/.test(this.#input.slice(openIndex + 2, openIndex + 4));
      const trimmedText = trimsBefore ? text.replace(trailingSpace, '') : text;
      if (trimmedText !== '') this.#addToken('text', trimmedText, this.#offset);
      if (openIndex < 0) break;
      this.#offset = openIndex + 2 + (trimsBefore ? 2 : 0);
      trimsNextText = this.#input.startsWith('/*', this.#offset)
        ? this.#readComment(openIndex)
        : this.#readAction(openIndex);
    }
    this.#addToken('end', '', this.#input.length);
    return this.#tokens;
  }

  /** @returns whether the text after the comment is trimmed */
  #readComment(openIndex: number): boolean {
    const end = this.#input.indexOf('*/', this.#offset + 2);
    if (end < 0) throw this.#createError(openIndex, 'a comment is not closed with */');
    this.#offset = end + 2;
    const close = this.#match(closing);
    if (close === undefined) throw this.#createError(this.#offset, 'a comment must end right before }}');
    this.#offset += close.length;
    return close.length > 2;
  }

  /** @returns whether the text after the action is trimmed */
  #readAction(openIndex: number): boolean {
    this.#addToken('open', opening, openIndex);
    const parens: number[] = [];
    for (;;) {
      const close = this.#match(closing);
      if (close !== undefined) {
        const unclosedOffset = parens.at(-1);
        if (unclosedOffset !== undefined) throw this.#createError(unclosedOffset, 'a ( is not closed');
        this.#addToken('close', close, this.#offset);
        this.#offset += close.length;
        return close.length > 2;
      }
      const token = this.#readToken(openIndex);
      if (token.kind === 'paren(') parens.push(this.#offset - 1);
      if (token.kind === 'paren)' && parens.pop() === undefined)
        throw this.#createError(this.#offset - 1, 'unexpected )');
    }
  }

  #readToken(openIndex: number): Token {
    if (this.#offset >= this.#input.length) throw this.#createError(openIndex, 'an action is not closed with }}');
    for (const [kind, rule] of rules) {
      const text = this.#match(rule);
      if (text === undefined) continue;
      const startOffset = this.#offset;
      this.#offset += text.length;
      const needsBoundary = kindsBeforeBoundary.has(kind) || kind === 'number';
      if (needsBoundary && this.#match(kind === 'number' ? numberEnd : wordEnd) === undefined) {
        const message = kind === 'number' ? 'number' : 'name';
        throw this.#createError(
          startOffset,
          `bad character in a ${message}: ${quoteText(this.#input.slice(startOffset, this.#offset + 1))}`,
        );
      }
      return this.#addToken(kind === 'word' ? wordKind(text) : kind, text, startOffset);
    }
    const character = this.#input[this.#offset]!;
    const unclosedMessages = {
      '"': 'a string is not closed',
      '`': 'a raw string is not closed',
      "'": 'a character is not closed',
    };
    throw this.#createError(
      this.#offset,
      unclosedMessages[character as '"'] ?? `unexpected character ${quoteText(character)}`,
    );
  }

  #match(rule: RegExp): string | undefined {
    rule.lastIndex = this.#offset;
    return rule.exec(this.#input)?.[0];
  }

  #addToken(kind: TokenKind, text: string, offset: number): Token {
    const token = { kind, text, ...this.#positionAt(offset) };
    this.#tokens.push(token);
    return token;
  }

  #positionAt(offset: number): Position {
    let [lowIndex, highIndex] = [0, this.#lineStarts.length];
    while (highIndex - lowIndex > 1) {
      const middle = (lowIndex + highIndex) >> 1;
      if (this.#lineStarts[middle]! <= offset) lowIndex = middle;
      else highIndex = middle;
    }
    return { line: lowIndex + 1, column: offset - this.#lineStarts[lowIndex]! + 1 };
  }

  #createError(offset: number, message: string): TemplateError {
    return new TemplateError(this.#positionAt(offset), message);
  }
}

const numberEnd = /(?![\p{L}\p{Nd}_])/uy;

function wordKind(text: string): TokenKind {
  if (text === 'true' || text === 'false') return 'bool';
  return keywords.has(text) ? 'keyword' : 'identifier';
}

function quoteText(text: string): string {
  return JSON.stringify(text);
}
