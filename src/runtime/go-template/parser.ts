import { type Token, type TokenKind, tokenize } from './lexer.ts';
import { literalOf } from './literals.ts';
import type { BranchNode, CommandNode, Node, OperandNode, PipeNode, TemplateSet } from './nodes.ts';
import { type Position, TemplateError } from './template-error.ts';

/** A bootstrap has fewer than ten levels of blocks and parentheses. */
const maxNesting = 100;

export const mainTemplate = 'bootstrap';

/** @throws TemplateError */
export function parseTemplate(template: string, isFunction: (name: string) => boolean): TemplateSet {
  const parser = new Parser(tokenize(template), isFunction);
  return parser.run();
}

interface Ending extends Position {
  readonly word: 'end' | 'else' | undefined;
}

class Parser {
  readonly #tokens: readonly Token[];
  readonly #isFunction: (name: string) => boolean;
  readonly #templates = new Map<string, readonly Node[]>();
  #tokenIndex = 0;
  #nestingDepth = 0;
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
  #define(name: string, nodes: readonly Node[], position: Position): void {
    const isEmpty = nodes.every((node) => node.is === 'text' && /^\s*$/.test(node.text));
    const existingTemplate = this.#templates.get(name);
    if (existingTemplate === undefined || existingTemplate.length === 0) {
      this.#templates.set(name, nodes);
      return;
    }
    if (isEmpty) return;
    if (name !== mainTemplate && existingTemplate.some((node) => node.is !== 'text' || /\S/.test(node.text)))
      throw error(position, `template ${JSON.stringify(name)} is defined twice`);
    this.#templates.set(name, nodes);
  }

  #nodes(): { nodes: Node[]; ending: Ending } {
    const nodes: Node[] = [];
    for (;;) {
      const token = this.#tokens[this.#tokenIndex++]!;
      if (token.kind === 'end') return { nodes, ending: { ...token, word: undefined } };
      if (token.kind === 'text') {
        nodes.push({ is: 'text', text: token.text });
        continue;
      }
      const nextKeyword = this.#skipSpace();
      if (nextKeyword.kind === 'keyword' && (nextKeyword.text === 'end' || nextKeyword.text === 'else')) {
        this.#tokenIndex++;
        return { nodes, ending: { line: nextKeyword.line, column: nextKeyword.column, word: nextKeyword.text } };
      }
      const node = this.#action(token);
      if (node !== undefined) nodes.push(node);
    }
  }

  #action(openToken: Token): Node | undefined {
    const token = this.#skipSpace();
    if (token.kind !== 'keyword' || token.text === 'nil') {
      return { is: 'action', ...positionOf(token), pipe: this.#pipeline('close', 'command') };
    }
    this.#tokenIndex++;
    switch (token.text) {
      case 'if':
      case 'with':
      case 'range':
        return this.#branch(token.text, token);
      case 'define':
        this.#definition(token);
        return undefined;
      case 'template':
      case 'block':
        return this.#template(token);
      case 'break':
      case 'continue':
        if (this.#loops === 0) throw error(token, `{{${token.text}}} outside {{range}}`);
        this.#expectClose(token.text);
        return { is: token.text, ...positionOf(token) };
      default:
        throw error(openToken, `unexpected {{${token.text}}}`);
    }
  }

  #branch(keyword: BranchNode['is'], keywordToken: Token): BranchNode {
    const scope = this.#variables.length;
    this.#enter(keywordToken);
    if (keyword === 'range') this.#loops++;
    const pipe = this.#pipeline('close', keyword);
    const { nodes: then, ending } = this.#nodes();
    if (keyword === 'range') this.#loops--;
    const elseNodes = this.#parseElse(keyword, ending, keywordToken);
    this.#nestingDepth--;
    this.#variables.length = scope;
    return { is: keyword, ...positionOf(keywordToken), pipe, then, otherwise: elseNodes };
  }

  /** `{{else if}}` and `{{else with}}` share the `{{end}}` of the block that contains them. */
  #parseElse(keyword: BranchNode['is'], ending: Ending, keywordToken: Token): readonly Node[] {
    if (ending.word === undefined) throw error(keywordToken, `{{${keyword}}} is not closed with {{end}}`);
    if (ending.word === 'end') {
      this.#expectClose('end');
      return [];
    }
    const next = this.#skipSpace();
    if (keyword !== 'range' && next.kind === 'keyword' && next.text === keyword) {
      this.#tokenIndex++;
      return [this.#branch(keyword, next)];
    }
    this.#expectClose('else');
    const { nodes, ending: last } = this.#nodes();
    if (last.word !== 'end') {
      throw last.word === undefined
        ? error(keywordToken, `{{${keyword}}} is not closed with {{end}}`)
        : error(last, 'expected {{end}} after {{else}}, got {{else}}');
    }
    this.#expectClose('end');
    return nodes;
  }

  #definition(keywordToken: Token): void {
    if (this.#nestingDepth > 0) throw error(keywordToken, 'unexpected {{define}} within another block');
    const name = this.#name('define');
    this.#expectClose('define');
    this.#define(name, this.#body('define', keywordToken), keywordToken);
  }

  #template(keywordToken: Token): Node {
    const keyword = keywordToken.text as 'template' | 'block';
    const name = this.#name(keyword);
    const hasPipe = this.#skipSpace().kind !== 'close';
    if (keyword === 'block' && !hasPipe) throw error(keywordToken, '{{block}} lacks a value');
    const pipe = hasPipe ? this.#pipeline('close', keyword) : undefined;
    if (!hasPipe) this.#expectClose(keyword);
    if (keyword === 'block') this.#define(name, this.#body('block', keywordToken), keywordToken);
    return { is: 'template', ...positionOf(keywordToken), name, ...(pipe !== undefined && { pipe }) };
  }

  /** Does not inherit variables. */
  #body(keyword: string, keywordToken: Token): readonly Node[] {
    const [variables, loops] = [this.#variables, this.#loops];
    this.#variables = ['$'];
    this.#loops = 0;
    this.#enter(keywordToken);
    const { nodes, ending } = this.#nodes();
    if (ending.word !== 'end') throw error(keywordToken, `{{${keyword}}} is not closed with {{end}}`);
    this.#expectClose('end');
    this.#nestingDepth--;
    this.#variables = variables;
    this.#loops = loops;
    return nodes;
  }

  #enter(position: Position): void {
    if (++this.#nestingDepth > maxNesting)
      throw error(position, `more than ${maxNesting} blocks or parentheses nested`);
  }

  #name(context: string): string {
    const token = this.#skipSpace();
    if (token.kind !== 'string' && token.kind !== 'rawString')
      throw unexpected(token, `the name of a template in {{${context}}}`);
    this.#tokenIndex++;
    return literalOf(token) as string;
  }

  #expectClose(context: string): void {
    const token = this.#skipSpace();
    if (token.kind !== 'close') throw unexpected(token, `}} after ${context}`);
    this.#tokenIndex++;
  }

  #pipeline(end: 'close' | 'paren)', context: string): PipeNode {
    const firstToken = this.#skipSpace();
    const { variables, assigns } = this.#declaration(context);
    const commands: CommandNode[] = [];
    for (;;) {
      const token = this.#skipSpace();
      if (token.kind === end) {
        this.#tokenIndex++;
        this.#checkPipeline(commands, token, context);
        return { is: 'pipe', ...positionOf(firstToken), variables, assigns, commands };
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
    const startIndex = this.#tokenIndex;
    const variables: string[] = [];
    for (;;) {
      const token = this.#skipSpace();
      if (token.kind !== 'variable') break;
      this.#tokenIndex++;
      variables.push(token.text);
      const next = this.#skipSpace();
      if (next.kind === 'declare' || next.kind === 'assign') {
        this.#tokenIndex++;
        this.#variables.push(...variables);
        return { variables, assigns: next.kind === 'assign' };
      }
      if (next.kind !== 'comma') break;
      if (context !== 'range' || variables.length > 1) throw error(next, `too many variables in ${context}`);
      this.#tokenIndex++;
      if (this.#skipSpace().kind !== 'variable') throw error(next, 'range can only declare variables');
    }
    this.#tokenIndex = startIndex;
    return { variables: [], assigns: false };
  }

  #checkVariable(name: string, position: Position): void {
    if (!this.#variables.includes(name)) throw error(position, `undefined variable ${JSON.stringify(name)}`);
  }

  #command(): CommandNode {
    const position = positionOf(this.#skipSpace());
    const operands: OperandNode[] = [];
    for (;;) {
      const startIndex = this.#skipSpace();
      const operand = this.#operand();
      if (operand !== undefined) operands.push(operand);
      const next = this.#tokens[this.#tokenIndex]!;
      if (next.kind === 'space') {
        this.#tokenIndex++;
        if (!endsCommand(this.#skipSpace().kind)) continue;
      }
      const end = this.#tokens[this.#tokenIndex]!;
      if (!endsCommand(end.kind)) throw unexpected(end, operand === undefined ? 'an operand' : 'a space');
      if (end.kind === 'pipe') {
        this.#tokenIndex++;
        if (endsCommand(this.#skipSpace().kind)) throw error(end, 'missing command after |');
      }
      const [first, ...otherOperands] = operands;
      if (first === undefined) throw error(startIndex, 'empty command');
      return { ...position, operands: [first, ...otherOperands] };
    }
  }

  #operand(): OperandNode | undefined {
    const token = this.#tokens[this.#tokenIndex]!;
    const of = this.#term(token);
    if (of === undefined) return undefined;
    const fields: string[] = [];
    const firstField = this.#tokens[this.#tokenIndex]!;
    while (this.#tokens[this.#tokenIndex]!.kind === 'field')
      fields.push(this.#tokens[this.#tokenIndex++]!.text.slice(1));
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
    const position = positionOf(token);
    this.#tokenIndex++;
    switch (token.kind) {
      case 'identifier':
        if (!this.#isFunction(token.text)) throw error(position, `there is no function ${JSON.stringify(token.text)}`);
        return { is: 'function', ...position, name: token.text };
      case 'dot':
        return { is: 'dot', ...position };
      case 'field':
        return { is: 'field', ...position, fields: [token.text.slice(1)] };
      case 'variable':
        this.#checkVariable(token.text, token);
        return { is: 'variable', ...position, name: token.text, fields: [] };
      case 'bool':
      case 'char':
      case 'number':
      case 'string':
      case 'rawString':
        return { is: 'literal', ...position, value: literalOf(token), text: token.text };
      case 'paren(':
        return this.#parenthesis(position);
      default:
        if (token.kind === 'keyword' && token.text === 'nil') return { is: 'nil', ...position };
        this.#tokenIndex--;
        return undefined;
    }
  }

  #parenthesis(position: Position): PipeNode {
    this.#enter(position);
    const pipe = this.#pipeline('paren)', 'parenthesized pipeline');
    this.#nestingDepth--;
    return { ...pipe, ...position };
  }

  #skipSpace(): Token {
    while (this.#tokens[this.#tokenIndex]!.kind === 'space') this.#tokenIndex++;
    return this.#tokens[this.#tokenIndex]!;
  }
}

function endsCommand(kind: TokenKind): boolean {
  return kind === 'close' || kind === 'paren)' || kind === 'pipe';
}

function positionOf({ line, column }: Position): Position {
  return { line, column };
}

function error(position: Position, message: string): TemplateError {
  return new TemplateError(position, message);
}

function unexpected(token: Token, expected: string): TemplateError {
  return error(token, `expected ${expected}, got ${token.kind === 'end' ? 'the end' : JSON.stringify(token.text)}`);
}
