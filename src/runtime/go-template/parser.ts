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

interface BlockEnding extends Position {
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
    const { nodes, ending } = this.#parseNodes();
    if (ending.word !== undefined) throw createError(ending, `unexpected {{${ending.word}}}`);
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
      throw createError(position, `template ${JSON.stringify(name)} is defined twice`);
    this.#templates.set(name, nodes);
  }

  #parseNodes(): { nodes: Node[]; ending: BlockEnding } {
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
      const node = this.#parseAction(token);
      if (node !== undefined) nodes.push(node);
    }
  }

  #parseAction(openToken: Token): Node | undefined {
    const token = this.#skipSpace();
    if (token.kind !== 'keyword' || token.text === 'nil') {
      return { is: 'action', ...positionOf(token), pipe: this.#parsePipeline('close', 'command') };
    }
    this.#tokenIndex++;
    switch (token.text) {
      case 'if':
      case 'with':
      case 'range':
        return this.#parseBranch(token.text, token);
      case 'define':
        this.#parseDefinition(token);
        return undefined;
      case 'template':
      case 'block':
        return this.#parseTemplateCall(token);
      case 'break':
      case 'continue':
        if (this.#loops === 0) throw createError(token, `{{${token.text}}} outside {{range}}`);
        this.#expectClose(token.text);
        return { is: token.text, ...positionOf(token) };
      default:
        throw createError(openToken, `unexpected {{${token.text}}}`);
    }
  }

  #parseBranch(keyword: BranchNode['is'], keywordToken: Token): BranchNode {
    const scope = this.#variables.length;
    this.#enterNesting(keywordToken);
    if (keyword === 'range') this.#loops++;
    const pipe = this.#parsePipeline('close', keyword);
    const { nodes: then, ending } = this.#parseNodes();
    if (keyword === 'range') this.#loops--;
    const elseNodes = this.#parseElse(keyword, ending, keywordToken);
    this.#nestingDepth--;
    this.#variables.length = scope;
    return { is: keyword, ...positionOf(keywordToken), pipe, then, otherwise: elseNodes };
  }

  /** `{{else if}}` and `{{else with}}` share the `{{end}}` of the block that contains them. */
  #parseElse(keyword: BranchNode['is'], ending: BlockEnding, keywordToken: Token): readonly Node[] {
    if (ending.word === undefined) throw createError(keywordToken, `{{${keyword}}} is not closed with {{end}}`);
    if (ending.word === 'end') {
      this.#expectClose('end');
      return [];
    }
    const next = this.#skipSpace();
    if (keyword !== 'range' && next.kind === 'keyword' && next.text === keyword) {
      this.#tokenIndex++;
      return [this.#parseBranch(keyword, next)];
    }
    this.#expectClose('else');
    const { nodes, ending: lastEnding } = this.#parseNodes();
    if (lastEnding.word !== 'end') {
      throw lastEnding.word === undefined
        ? createError(keywordToken, `{{${keyword}}} is not closed with {{end}}`)
        : createError(lastEnding, 'expected {{end}} after {{else}}, got {{else}}');
    }
    this.#expectClose('end');
    return nodes;
  }

  #parseDefinition(keywordToken: Token): void {
    if (this.#nestingDepth > 0) throw createError(keywordToken, 'unexpected {{define}} within another block');
    const name = this.#parseName('define');
    this.#expectClose('define');
    this.#define(name, this.#parseBody('define', keywordToken), keywordToken);
  }

  #parseTemplateCall(keywordToken: Token): Node {
    const keyword = keywordToken.text as 'template' | 'block';
    const name = this.#parseName(keyword);
    const hasPipe = this.#skipSpace().kind !== 'close';
    if (keyword === 'block' && !hasPipe) throw createError(keywordToken, '{{block}} lacks a value');
    const pipe = hasPipe ? this.#parsePipeline('close', keyword) : undefined;
    if (!hasPipe) this.#expectClose(keyword);
    if (keyword === 'block') this.#define(name, this.#parseBody('block', keywordToken), keywordToken);
    return { is: 'template', ...positionOf(keywordToken), name, ...(pipe !== undefined && { pipe }) };
  }

  /** Does not inherit variables. */
  #parseBody(keyword: string, keywordToken: Token): readonly Node[] {
    const [variables, loops] = [this.#variables, this.#loops];
    this.#variables = ['$'];
    this.#loops = 0;
    this.#enterNesting(keywordToken);
    const { nodes, ending } = this.#parseNodes();
    if (ending.word !== 'end') throw createError(keywordToken, `{{${keyword}}} is not closed with {{end}}`);
    this.#expectClose('end');
    this.#nestingDepth--;
    this.#variables = variables;
    this.#loops = loops;
    return nodes;
  }

  #enterNesting(position: Position): void {
    if (++this.#nestingDepth > maxNesting)
      throw createError(position, `more than ${maxNesting} blocks or parentheses nested`);
  }

  #parseName(context: string): string {
    const token = this.#skipSpace();
    if (token.kind !== 'string' && token.kind !== 'rawString')
      throw unexpectedTokenError(token, `the name of a template in {{${context}}}`);
    this.#tokenIndex++;
    return literalOf(token) as string;
  }

  #expectClose(context: string): void {
    const token = this.#skipSpace();
    if (token.kind !== 'close') throw unexpectedTokenError(token, `}} after ${context}`);
    this.#tokenIndex++;
  }

  #parsePipeline(end: 'close' | 'paren)', context: string): PipeNode {
    const firstToken = this.#skipSpace();
    const { variables, assigns } = this.#parseDeclaration(context);
    const commands: CommandNode[] = [];
    for (;;) {
      const token = this.#skipSpace();
      if (token.kind === end) {
        this.#tokenIndex++;
        this.#checkPipeline(commands, token, context);
        return { is: 'pipe', ...positionOf(firstToken), variables, assigns, commands };
      }
      commands.push(this.#parseCommand());
    }
  }

  #checkPipeline(commands: readonly CommandNode[], end: Token, context: string): void {
    if (commands.length === 0) throw createError(end, `missing value for ${context}`);
    for (const [index, { operands }] of commands.entries()) {
      const [firstOperand] = operands;
      if (index > 0 && (firstOperand.is === 'literal' || firstOperand.is === 'dot' || firstOperand.is === 'nil'))
        throw createError(firstOperand, `stage ${index + 1} of the pipeline, after |, must be a function`);
    }
  }

  /** `$x :=`, `$x =`, and for `range` two variables. */
  #parseDeclaration(context: string): { variables: readonly string[]; assigns: boolean } {
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
      if (context !== 'range' || variables.length > 1) throw createError(next, `too many variables in ${context}`);
      this.#tokenIndex++;
      if (this.#skipSpace().kind !== 'variable') throw createError(next, 'range can only declare variables');
    }
    this.#tokenIndex = startIndex;
    return { variables: [], assigns: false };
  }

  #checkVariable(name: string, position: Position): void {
    if (!this.#variables.includes(name)) throw createError(position, `undefined variable ${JSON.stringify(name)}`);
  }

  #parseCommand(): CommandNode {
    const position = positionOf(this.#skipSpace());
    const operands: OperandNode[] = [];
    for (;;) {
      const startIndex = this.#skipSpace();
      const operand = this.#parseOperand();
      if (operand !== undefined) operands.push(operand);
      const next = this.#tokens[this.#tokenIndex]!;
      if (next.kind === 'space') {
        this.#tokenIndex++;
        if (!isCommandEnd(this.#skipSpace().kind)) continue;
      }
      const end = this.#tokens[this.#tokenIndex]!;
      if (!isCommandEnd(end.kind)) throw unexpectedTokenError(end, operand === undefined ? 'an operand' : 'a space');
      if (end.kind === 'pipe') {
        this.#tokenIndex++;
        if (isCommandEnd(this.#skipSpace().kind)) throw createError(end, 'missing command after |');
      }
      const [firstOperand, ...otherOperands] = operands;
      if (firstOperand === undefined) throw createError(startIndex, 'empty command');
      return { ...position, operands: [firstOperand, ...otherOperands] };
    }
  }

  #parseOperand(): OperandNode | undefined {
    const token = this.#tokens[this.#tokenIndex]!;
    const base = this.#parseTerm(token);
    if (base === undefined) return undefined;
    const fields: string[] = [];
    const firstField = this.#tokens[this.#tokenIndex]!;
    while (this.#tokens[this.#tokenIndex]!.kind === 'field')
      fields.push(this.#tokens[this.#tokenIndex++]!.text.slice(1));
    if (fields.length === 0) return base;
    switch (base.is) {
      case 'field':
      case 'variable':
        return { ...base, fields: [...base.fields, ...fields] };
      case 'dot':
      case 'nil':
      case 'literal':
        throw unexpectedTokenError(firstField, `nothing after ${token.text}`);
      default:
        return { is: 'chain', ...positionOf(token), of: base, fields };
    }
  }

  #parseTerm(token: Token): OperandNode | undefined {
    const position = positionOf(token);
    this.#tokenIndex++;
    switch (token.kind) {
      case 'identifier':
        if (!this.#isFunction(token.text))
          throw createError(position, `there is no function ${JSON.stringify(token.text)}`);
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
        return this.#parseParenthesis(position);
      default:
        if (token.kind === 'keyword' && token.text === 'nil') return { is: 'nil', ...position };
        this.#tokenIndex--;
        return undefined;
    }
  }

  #parseParenthesis(position: Position): PipeNode {
    this.#enterNesting(position);
    const pipe = this.#parsePipeline('paren)', 'parenthesized pipeline');
    this.#nestingDepth--;
    return { ...pipe, ...position };
  }

  #skipSpace(): Token {
    while (this.#tokens[this.#tokenIndex]!.kind === 'space') this.#tokenIndex++;
    return this.#tokens[this.#tokenIndex]!;
  }
}

function isCommandEnd(kind: TokenKind): boolean {
  return kind === 'close' || kind === 'paren)' || kind === 'pipe';
}

function positionOf({ line, column }: Position): Position {
  return { line, column };
}

function createError(position: Position, message: string): TemplateError {
  return new TemplateError(position, message);
}

function unexpectedTokenError(token: Token, expected: string): TemplateError {
  return createError(
    token,
    `expected ${expected}, got ${token.kind === 'end' ? 'the end' : JSON.stringify(token.text)}`,
  );
}
