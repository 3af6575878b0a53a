/** A template of Go's text/template, read into a tree: what bootstraps are written in (spec/agent.md §4.2). Pure. */

/** What an action computes. */
export type Expression =
  | { readonly is: 'value'; readonly value: unknown }
  | { readonly is: 'field'; readonly of: Expression; readonly names: readonly string[] }
  | { readonly is: 'variable'; readonly name: string }
  | { readonly is: 'dot' }
  | { readonly is: 'call'; readonly name: string; readonly args: readonly Expression[] };

export type Part = { readonly line: number } & (
  | { readonly is: 'text'; readonly text: string }
  | { readonly is: 'print'; readonly value: Expression }
  | { readonly is: 'set'; readonly name: string; readonly declares: boolean; readonly value: Expression }
  | {
      readonly is: 'if' | 'with';
      readonly value: Expression;
      readonly then: readonly Part[];
      readonly otherwise: readonly Part[];
    }
  | {
      readonly is: 'range';
      readonly value: Expression;
      /** Names of the variables for the index and the element, or for the element alone. */
      readonly names: readonly string[];
      readonly then: readonly Part[];
      readonly otherwise: readonly Part[];
    }
);

/** Told with the line of the template. */
export class TemplateMistake extends Error {
  readonly line: number;

  constructor(line: number, what: string) {
    super(what);
    this.line = line;
  }
}

interface Token {
  readonly kind: 'field' | 'variable' | 'word' | 'literal' | 'sign';
  readonly text: string;
  readonly value?: unknown;
}

interface Piece {
  readonly line: number;
  readonly text?: string;
  readonly tokens?: readonly Token[];
}

/** From `{{` on. A brace within quotes ends nothing. */
const action =
  /\{\{(-(?=\s))?\s*(?:\/\*[\s\S]*?\*\/|((?:"(?:[^"\\\n]|\\.)*"|`[^`]*`|(?!\s-\}\}|\}\})[^"`])*))\s*((?<=\s)-)?\}\}/y;

function pieces(template: string): Piece[] {
  const found: Piece[] = [];
  let [at, line, trims] = [0, 1, false];
  for (;;) {
    const begin = template.indexOf('{{', at);
    const raw = template.slice(at, begin < 0 ? undefined : begin);
    const textLine = line;
    line += linesIn(raw);
    action.lastIndex = begin;
    const match = begin < 0 ? null : action.exec(template);
    if (begin >= 0 && match === null) throw new TemplateMistake(line, 'an action is not closed with }}');
    const text = match?.[1] === undefined ? raw : raw.trimEnd();
    const shown = trims ? text.trimStart() : text;
    if (shown !== '') found.push({ line: textLine, text: shown });
    if (match === null) return found;
    if (match[2] !== undefined) found.push({ line, tokens: tokensOf(match[2], line) });
    line += linesIn(match[0]);
    at = begin + match[0].length;
    trims = match[3] !== undefined;
  }
}

function linesIn(text: string): number {
  return text.split('\n').length - 1;
}

const token =
  /\s+|("(?:[^"\\]|\\.)*")|`([^`]*)`|(-?\d+(?:\.\d+)?(?![\w.]))|(\$\w*)|(\.[\p{L}_][\w]*)|([\p{L}_]\w*)|(:=|[().|=,])/uy;

function tokensOf(text: string, line: number): Token[] {
  const tokens: Token[] = [];
  token.lastIndex = 0;
  while (token.lastIndex < text.length) {
    const at = token.lastIndex;
    const match = token.exec(text);
    if (match === null) throw new TemplateMistake(line, `cannot be read: ${JSON.stringify(text.slice(at, at + 40))}`);
    const [, quoted, raw, number, variable, field, word, sign] = match;
    if (quoted !== undefined) tokens.push({ kind: 'literal', text: quoted, value: unquoted(quoted, line) });
    else if (raw !== undefined) tokens.push({ kind: 'literal', text: raw, value: raw });
    else if (number !== undefined) tokens.push({ kind: 'literal', text: number, value: Number(number) });
    else if (variable !== undefined) tokens.push({ kind: 'variable', text: variable });
    else if (field !== undefined) tokens.push({ kind: 'field', text: field.slice(1) });
    else if (word !== undefined) tokens.push({ kind: 'word', text: word });
    else if (sign !== undefined) tokens.push({ kind: 'sign', text: sign });
  }
  return tokens;
}

function unquoted(text: string, line: number): string {
  try {
    return JSON.parse(text) as string;
  } catch {
    throw new TemplateMistake(line, `${text} is no text`);
  }
}

/** @throws TemplateMistake */
export function parseTemplate(template: string): readonly Part[] {
  const reader = new Reader(pieces(template));
  return reader.parts([]);
}

/** Blocks in one another; somebody who writes more makes no bootstrap. */
const deepest = 100;

class Reader {
  readonly #pieces: readonly Piece[];
  #at = 0;
  #depth = 0;

  constructor(found: readonly Piece[]) {
    this.#pieces = found;
  }

  /** Up to an action that begins with one of the words, which is left; none: to the end. */
  parts(ends: readonly string[]): Part[] {
    const parts: Part[] = [];
    if (++this.#depth > deepest)
      throw new TemplateMistake(this.#pieces[this.#at]?.line ?? 1, `blocks in more than ${deepest} others`);
    for (;;) {
      const piece = this.#pieces[this.#at];
      const line = piece?.line ?? this.#pieces.at(-1)?.line ?? 1;
      if (piece === undefined) {
        if (ends.length > 0) throw new TemplateMistake(line, 'a block is not closed with {{ end }}');
        break;
      }
      const first = piece.tokens?.[0];
      if (first?.kind === 'word' && ends.includes(first.text)) break;
      this.#at++;
      if (piece.text !== undefined) parts.push({ is: 'text', line, text: piece.text });
      else parts.push(this.#action(piece.tokens!, line));
    }
    this.#depth--;
    return parts;
  }

  #action(tokens: readonly Token[], line: number): Part {
    const [first, second] = tokens;
    if (first === undefined) throw new TemplateMistake(line, 'an action is empty');
    if (first.kind === 'word' && ['if', 'with', 'range'].includes(first.text)) {
      return this.#block(first.text as 'if', new Pipeline(tokens.slice(1), line), line);
    }
    if (
      first.kind === 'word' &&
      ['else', 'end', 'define', 'template', 'block', 'break', 'continue'].includes(first.text)
    ) {
      throw new TemplateMistake(line, `{{ ${first.text} }} has no place here`);
    }
    if (first.kind === 'variable' && (second?.text === ':=' || second?.text === '=')) {
      const value = new Pipeline(tokens.slice(2), line).whole();
      return { is: 'set', line, name: first.text, declares: second.text === ':=', value };
    }
    return { is: 'print', line, value: new Pipeline(tokens, line).whole() };
  }

  #block(is: 'if' | 'with' | 'range', pipeline: Pipeline, line: number): Part {
    const names = pipeline.declared();
    if (names.length > (is === 'range' ? 2 : 0))
      throw new TemplateMistake(line, `{{ ${is} }} cannot declare ${names.join(', ')}`);
    const value = pipeline.whole();
    const then = this.parts(['else', 'end']);
    const [word, ...rest] = this.#pieces[this.#at++]!.tokens!;
    let otherwise: readonly Part[] = [];
    if (word!.text === 'else' && rest[0]?.text === 'if') {
      otherwise = [this.#block('if', new Pipeline(rest.slice(1), line), line)];
    } else if (word!.text === 'else') {
      otherwise = this.parts(['end']);
      this.#at++;
    }
    return is === 'range' ? { is, line, value, names, then, otherwise } : { is, line, value, then, otherwise };
  }
}

/** What is between the braces, without the word that it begins with. */
class Pipeline {
  #tokens: readonly Token[];
  readonly #line: number;
  #depth = 0;

  constructor(tokens: readonly Token[], line: number) {
    this.#tokens = tokens;
    this.#line = line;
  }

  /** `$i, $v :=` before it. */
  declared(): string[] {
    const end = this.#tokens.findIndex(({ text }) => text === ':=');
    if (end < 0) return [];
    const names = this.#tokens.slice(0, end).filter(({ kind }) => kind === 'variable');
    this.#tokens = this.#tokens.slice(end + 1);
    return names.map(({ text }) => text);
  }

  whole(): Expression {
    const value = this.#pipeline();
    const [left] = this.#tokens;
    if (left !== undefined) throw this.#mistake(`${left.text} was not expected`);
    return value;
  }

  #pipeline(): Expression {
    if (++this.#depth > deepest) throw this.#mistake(`parentheses in more than ${deepest} others`);
    let value = this.#command();
    while (this.#takes('|')) {
      const next = this.#command();
      if (next.is !== 'call') throw this.#mistake('what follows | must be a function');
      value = { ...next, args: [...next.args, value] };
    }
    this.#depth--;
    return value;
  }

  #command(): Expression {
    const [first] = this.#tokens;
    if (first === undefined) throw this.#mistake('a value is missing');
    const isCall = first.kind === 'word' && !constants.has(first.text);
    if (!isCall) return this.#operand();
    this.#tokens = this.#tokens.slice(1);
    const args: Expression[] = [];
    while (this.#tokens[0] !== undefined && this.#tokens[0].text !== '|' && this.#tokens[0].text !== ')')
      args.push(this.#operand());
    return { is: 'call', name: first.text, args };
  }

  #operand(): Expression {
    const [first, ...rest] = this.#tokens;
    if (first === undefined) throw this.#mistake('a value is missing');
    this.#tokens = rest;
    let value: Expression;
    if (first.kind === 'literal') return { is: 'value', value: first.value };
    if (first.kind === 'word') {
      if (constants.has(first.text)) return { is: 'value', value: constants.get(first.text) };
      return { is: 'call', name: first.text, args: [] };
    }
    if (first.kind === 'field') value = { is: 'field', of: { is: 'dot' }, names: [first.text] };
    else if (first.kind === 'variable') value = { is: 'variable', name: first.text };
    else if (first.text === '.') value = { is: 'dot' };
    else if (first.text === '(') {
      value = this.#pipeline();
      if (!this.#takes(')')) throw this.#mistake('a ) is missing');
    } else throw this.#mistake(`${first.text} was not expected`);
    const names: string[] = [];
    while (this.#tokens[0]?.kind === 'field') {
      names.push(this.#tokens[0].text);
      this.#tokens = this.#tokens.slice(1);
    }
    return names.length === 0 ? value : { is: 'field', of: value, names };
  }

  #takes(sign: string): boolean {
    if (this.#tokens[0]?.kind !== 'sign' || this.#tokens[0].text !== sign) return false;
    this.#tokens = this.#tokens.slice(1);
    return true;
  }

  #mistake(what: string): TemplateMistake {
    return new TemplateMistake(this.#line, what);
  }
}

const constants = new Map<string, unknown>([
  ['true', true],
  ['false', false],
  ['nil', undefined],
]);
