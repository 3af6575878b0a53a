import { type Token, type TokenKind, tokenize } from './lexer.ts';
import { literalOf } from './literals.ts';
import type { BranchNode, CommandNode, Node, OperandNode, PipeNode, TemplateSet } from './nodes.ts';
import { type Position, TemplateError } from './template-error.ts';

/** Limit of nested blocks and parentheses; a bootstrap has fewer than ten. */
const maxNesting = 100;

export const mainTemplate = 'bootstrap';

/**
 * @param isFunction whether a template may call a function of this name
 * @throws TemplateError
 */
export function parseTemplate(template: string, isFunction: (name: string) => boolean): TemplateSet {
  const parser = new Parser(tokenize(template), isFunction);
  return parser.run();
}

/** The keyword that ended a list of nodes. */
interface Ending extends Position {
  readonly word: 'end' | 'else' | undefined;
}

class Parser {
  readonly #tokens: readonly Token[];
  readonly #isFunction: (name: string) => boolean;
  readonly #templates = new Map<string, readonly Node[]>();
  #at = 0;
  #nesting = 0;
  #loops = 0;
  /** Variables in scope, innermost last. */
  #variables: string[] = ['$'];

  constructor(tokens: readonly Token[], isFunction: (name: string) => boolean) {
    this.#tokens = tokens;
    this.#isFunction = isFunction;
  }

  run(): TemplateSet {
    const { nodes, ending } = this.#nodes();
    if (ending.word !== undefined) throw error(ending, `unexpected {{${ending.word}}}`);
    this.#define(mainTemplate, nodes, ending);
    return this.#templates;
  }

  /** As in Go, an empty definition does not replace another one. */
  #define(name: string, nodes: readonly Node[], at: Position): void {
    const isEmpty = nodes.every((node) => node.is === 'text' && /^\s*$/.test(node.text));
    const existing = this.#templates.get(name);
    if (existing === undefined || existing.length === 0) {
      this.#templates.set(name, nodes);
      return;
    }
    if (isEmpty) return;
    if (name !== mainTemplate && existing.some((node) => node.is !== 'text' || /\S/.test(node.text)))
      throw error(at, `template ${JSON.stringify(name)} is defined twice`);
    this.#templates.set(name, nodes);
  }

  #nodes(): { nodes: Node[]; ending: Ending } {
    const nodes: Node[] = [];
    for (;;) {
      const token = this.#tokens[this.#at++]!;
      if (token.kind === 'end') return { nodes, ending: { ...token, word: undefined } };
      if (token.kind === 'text') {
        nodes.push({ is: 'text', text: token.text });
        continue;
      }
      const word = this.#skipSpace();
      if (word.kind === 'keyword' && (word.text === 'end' || word.text === 'else')) {
        this.#at++;
        return { nodes, ending: { line: word.line, column: word.column, word: word.text } };
      }
      const node = this.#action(token);
      if (node !== undefined) nodes.push(node);
    }
  }

  #action(open: Token): Node | undefined {
    const word = this.#skipSpace();
    if (word.kind !== 'keyword' || word.text === 'nil') {
      return { is: 'action', ...positionOf(word), pipe: this.#pipeline('close', 'command') };
    }
    this.#at++;
    switch (word.text) {
      case 'if':
      case 'with':
      case 'range':
        return this.#branch(word.text, word);
      case 'define':
        this.#definition(word);
        return undefined;
      case 'template':
      case 'block':
        return this.#template(word);
      case 'break':
      case 'continue':
        if (this.#loops === 0) throw error(word, `{{${word.text}}} outside {{range}}`);
        this.#expectClose(word.text);
        return { is: word.text, ...positionOf(word) };
      default:
        throw error(open, `unexpected {{${word.text}}}`);
    }
  }

  #branch(is: BranchNode['is'], at: Token): BranchNode {
    const scope = this.#variables.length;
    this.#enter(at);
    if (is === 'range') this.#loops++;
    const pipe = this.#pipeline('close', is);
    const { nodes: then, ending } = this.#nodes();
    if (is === 'range') this.#loops--;
    const otherwise = this.#otherwise(is, ending, at);
    this.#nesting--;
    this.#variables.length = scope;
    return { is, ...positionOf(at), pipe, then, otherwise };
  }

  /** `{{else if}}` and `{{else with}}` share the `{{end}}` of the block that contains them. */
  #otherwise(is: BranchNode['is'], ending: Ending, at: Token): readonly Node[] {
    if (ending.word === undefined) throw error(at, `{{${is}}} is not closed with {{end}}`);
    if (ending.word === 'end') {
      this.#expectClose('end');
      return [];
    }
    const next = this.#skipSpace();
    if (is !== 'range' && next.kind === 'keyword' && next.text === is) {
      this.#at++;
      return [this.#branch(is, next)];
    }
    this.#expectClose('else');
    const { nodes, ending: last } = this.#nodes();
    if (last.word !== 'end') {
      throw last.word === undefined
        ? error(at, `{{${is}}} is not closed with {{end}}`)
        : error(last, 'expected {{end}} after {{else}}, got {{else}}');
    }
    this.#expectClose('end');
    return nodes;
  }

  #definition(at: Token): void {
    if (this.#nesting > 0) throw error(at, 'unexpected {{define}} within another block');
    const name = this.#name('define');
    this.#expectClose('define');
    this.#define(name, this.#body('define', at), at);
  }

  #template(at: Token): Node {
    const is = at.text as 'template' | 'block';
    const name = this.#name(is);
    const hasPipe = this.#skipSpace().kind !== 'close';
    if (is === 'block' && !hasPipe) throw error(at, '{{block}} lacks a value');
    const pipe = hasPipe ? this.#pipeline('close', is) : undefined;
    if (!hasPipe) this.#expectClose(is);
    if (is === 'block') this.#define(name, this.#body('block', at), at);
    return { is: 'template', ...positionOf(at), name, ...(pipe !== undefined && { pipe }) };
  }

  /** Does not inherit variables. */
  #body(is: string, at: Token): readonly Node[] {
    const [variables, loops] = [this.#variables, this.#loops];
    this.#variables = ['$'];
    this.#loops = 0;
    this.#enter(at);
    const { nodes, ending } = this.#nodes();
    if (ending.word !== 'end') throw error(at, `{{${is}}} is not closed with {{end}}`);
    this.#expectClose('end');
    this.#nesting--;
    this.#variables = variables;
    this.#loops = loops;
    return nodes;
  }

  #enter(at: Position): void {
    if (++this.#nesting > maxNesting) throw error(at, `more than ${maxNesting} blocks or parentheses nested`);
  }

  #name(context: string): string {
    const token = this.#skipSpace();
    if (token.kind !== 'string' && token.kind !== 'rawString')
      throw unexpected(token, `the name of a template in {{${context}}}`);
    this.#at++;
    return literalOf(token) as string;
  }

  #expectClose(context: string): void {
    const token = this.#skipSpace();
    if (token.kind !== 'close') throw unexpected(token, `}} after ${context}`);
    this.#at++;
  }

  #pipeline(end: 'close' | 'paren)', context: string): PipeNode {
    const at = this.#skipSpace();
    const { variables, assigns } = this.#declaration(context);
    const commands: CommandNode[] = [];
    for (;;) {
      const token = this.#skipSpace();
      if (token.kind === end) {
        this.#at++;
        this.#checkPipeline(commands, token, context);
        return { is: 'pipe', ...positionOf(at), variables, assigns, commands };
      }
      commands.push(this.#command());
    }
  }

  #checkPipeline(commands: readonly CommandNode[], end: Token, context: string): void {
    if (commands.length === 0) throw error(end, `missing value for ${context}`);
    for (const [index, { operands }] of commands.entries()) {
      const [first] = operands;
      if (index > 0 && (first.is === 'literal' || first.is === 'dot' || first.is === 'nil'))
        throw error(first, `stage ${index + 1} of the pipeline, after |, must be a function`);
    }
  }

  /** `$x :=`, `$x =`, and for `range` two variables. */
  #declaration(context: string): { variables: readonly string[]; assigns: boolean } {
    const begin = this.#at;
    const variables: string[] = [];
    for (;;) {
      const token = this.#skipSpace();
      if (token.kind !== 'variable') break;
      this.#at++;
      variables.push(token.text);
      const next = this.#skipSpace();
      if (next.kind === 'declare' || next.kind === 'assign') {
        this.#at++;
        this.#variables.push(...variables);
        return { variables, assigns: next.kind === 'assign' };
      }
      if (next.kind !== 'comma') break;
      if (context !== 'range' || variables.length > 1) throw error(next, `too many variables in ${context}`);
      this.#at++;
      if (this.#skipSpace().kind !== 'variable') throw error(next, 'range can only declare variables');
    }
    this.#at = begin;
    return { variables: [], assigns: false };
  }

  #checkVariable(name: string, at: Position): void {
    if (!this.#variables.includes(name)) throw error(at, `undefined variable ${JSON.stringify(name)}`);
  }

  #command(): CommandNode {
    const at = positionOf(this.#skipSpace());
    const operands: OperandNode[] = [];
    for (;;) {
      const begin = this.#skipSpace();
      const operand = this.#operand();
      if (operand !== undefined) operands.push(operand);
      const next = this.#tokens[this.#at]!;
      if (next.kind === 'space') {
        this.#at++;
        if (!endsCommand(this.#skipSpace().kind)) continue;
      }
      const end = this.#tokens[this.#at]!;
      if (!endsCommand(end.kind)) throw unexpected(end, operand === undefined ? 'an operand' : 'a space');
      if (end.kind === 'pipe') {
        this.#at++;
        if (endsCommand(this.#skipSpace().kind)) throw error(end, 'missing command after |');
      }
      const [first, ...rest] = operands;
      if (first === undefined) throw error(begin, 'empty command');
      return { ...at, operands: [first, ...rest] };
    }
  }

  #operand(): OperandNode | undefined {
    const token = this.#tokens[this.#at]!;
    const of = this.#term(token);
    if (of === undefined) return undefined;
    const fields: string[] = [];
    const firstField = this.#tokens[this.#at]!;
    while (this.#tokens[this.#at]!.kind === 'field') fields.push(this.#tokens[this.#at++]!.text.slice(1));
    if (fields.length === 0) return of;
    switch (of.is) {
      case 'field':
      case 'variable':
        return { ...of, fields: [...of.fields, ...fields] };
      case 'dot':
      case 'nil':
      case 'literal':
        throw unexpected(firstField, `nothing after ${token.text}`);
      default:
        return { is: 'chain', ...positionOf(token), of, fields };
    }
  }

  #term(token: Token): OperandNode | undefined {
    const at = positionOf(token);
    this.#at++;
    switch (token.kind) {
      case 'identifier':
        if (!this.#isFunction(token.text)) throw error(at, `there is no function ${JSON.stringify(token.text)}`);
        return { is: 'function', ...at, name: token.text };
      case 'dot':
        return { is: 'dot', ...at };
      case 'field':
        return { is: 'field', ...at, fields: [token.text.slice(1)] };
      case 'variable':
        this.#checkVariable(token.text, token);
        return { is: 'variable', ...at, name: token.text, fields: [] };
      case 'bool':
      case 'char':
      case 'number':
      case 'string':
      case 'rawString':
        return { is: 'literal', ...at, value: literalOf(token), text: token.text };
      case 'paren(':
        return this.#parenthesis(at);
      default:
        if (token.kind === 'keyword' && token.text === 'nil') return { is: 'nil', ...at };
        this.#at--;
        return undefined;
    }
  }

  #parenthesis(at: Position): PipeNode {
    this.#enter(at);
    const pipe = this.#pipeline('paren)', 'parenthesized pipeline');
    this.#nesting--;
    return { ...pipe, ...at };
  }

  #skipSpace(): Token {
    while (this.#tokens[this.#at]!.kind === 'space') this.#at++;
    return this.#tokens[this.#at]!;
  }
}

function endsCommand(kind: TokenKind): boolean {
  return kind === 'close' || kind === 'paren)' || kind === 'pipe';
}

function positionOf({ line, column }: Position): Position {
  return { line, column };
}

function error(at: Position, message: string): TemplateError {
  return new TemplateError(at, message);
}

function unexpected(token: Token, expected: string): TemplateError {
  return error(token, `expected ${expected}, got ${token.kind === 'end' ? 'the end' : JSON.stringify(token.text)}`);
}
