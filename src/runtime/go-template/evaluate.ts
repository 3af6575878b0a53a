import { sprint } from './format.ts';
import type { TemplateFunction } from './functions.ts';
import type { BranchNode, CommandNode, Node, OperandNode, PipeNode, TemplateSet } from './nodes.ts';
import { mainTemplate } from './parser.ts';
import { FunctionError, type Position, TemplateError } from './template-error.ts';
import { GoMap, GoStruct, type GoValue, isList, isTruthy, typeName } from './values.ts';

/** Maximum characters of the output; a bootstrap has some kilobytes. */
const maxOutput = 4 * 1024 * 1024;
/** Maximum executed nodes; those of a loop count once per iteration. */
const maxSteps = 1_000_000;
const maxCalls = 200;
/**
 * Maximum characters and items that functions accept and return, for all calls together, because repeated doubling of a text would exhaust the memory
 * within few steps.
 */
const maxHandled = 16 * 1024 * 1024;

interface Variable {
  readonly name: string;
  value: GoValue;
}

type LoopInterruption = 'break' | 'continue' | undefined;

/** No value from an earlier command of the pipeline, as opposed to a nil value. */
const noFinalValue = Symbol('none');
type FinalArgument = GoValue | typeof noFinalValue;

export class Execution {
  readonly #templates: TemplateSet;
  readonly #functions: ReadonlyMap<string, TemplateFunction>;
  readonly #output: string[] = [];
  #length = 0;
  #steps = 0;
  #calls = 0;
  #handledCount = 0;
  #variables: Variable[] = [];
  #isEvaluatingCondition = false;

  constructor(templates: TemplateSet, functions: ReadonlyMap<string, TemplateFunction>) {
    this.#templates = templates;
    this.#functions = functions;
  }

  /** @throws TemplateError */
  run(data: GoValue): string {
    this.#variables = [{ name: '$', value: data }];
    this.#executeNodes(data, this.#templates.get(mainTemplate) ?? []);
    return this.#output.join('');
  }

  #write(text: string, position: Position): void {
    this.#length += text.length;
    if (this.#length > maxOutput) throw new TemplateError(position, `the output has more than ${maxOutput} characters`);
    this.#output.push(text);
  }

  #countStep(position: Position): void {
    if (++this.#steps > maxSteps) throw new TemplateError(position, `more than ${maxSteps} steps`);
  }

  /** Lists may contain one another many times, so counting stops at the limit. */
  #checkValues(values: readonly GoValue[], position: Position): void {
    const pendingValues = [...values];
    for (
      let value = pendingValues.pop();
      pendingValues.length > 0 || value !== undefined;
      value = pendingValues.pop()
    ) {
      this.#handledCount += typeof value === 'string' ? value.length + 1 : 1;
      if (this.#handledCount > maxHandled)
        throw new TemplateError(position, `functions handle more than ${maxHandled} characters`);
      if (isList(value)) for (const item of value) pendingValues.push(item);
      else if (value instanceof GoMap) for (const item of value.values()) pendingValues.push(item);
    }
  }

  #executeNodes(dot: GoValue, nodes: readonly Node[]): LoopInterruption {
    let position: Position = { line: 1, column: 1 };
    for (const node of nodes) {
      if (node.is === 'text') {
        this.#write(node.text, position);
        continue;
      }
      position = node;
      this.#countStep(node);
      const interruption = this.#execute(dot, node);
      if (interruption !== undefined) return interruption;
    }
    return undefined;
  }

  #execute(dot: GoValue, node: Exclude<Node, { is: 'text' }>): LoopInterruption {
    switch (node.is) {
      case 'action': {
        const value = this.#evaluatePipeline(dot, node.pipe);
        if (node.pipe.variables.length === 0) this.#write(value === undefined ? '<no value>' : sprint([value]), node);
        return undefined;
      }
      case 'template':
        this.#executeTemplate(dot, node);
        return undefined;
      case 'break':
      case 'continue':
        return node.is;
      case 'range':
        return this.#runInScope(() => this.#executeRange(dot, node));
      default:
        return this.#runInScope(() => {
          const value = this.#evaluateCondition(dot, node.pipe);
          const innerDot = node.is === 'with' && isTruthy(value) ? value : dot;
          return this.#executeNodes(innerDot, isTruthy(value) ? node.then : node.otherwise);
        });
    }
  }

  #evaluateCondition(dot: GoValue, pipe: PipeNode): GoValue {
    this.#isEvaluatingCondition = true;
    const value = this.#evaluatePipeline(dot, pipe);
    this.#isEvaluatingCondition = false;
    return value;
  }

  #runInScope(task: () => LoopInterruption): LoopInterruption {
    const scope = this.#variables.length;
    const interruption = task();
    this.#variables.length = scope;
    return interruption;
  }

  #executeTemplate(dot: GoValue, node: Node & { is: 'template' }): void {
    const nodes = this.#templates.get(node.name);
    if (nodes === undefined) throw new TemplateError(node, `template ${JSON.stringify(node.name)} is not defined`);
    if (++this.#calls > maxCalls) throw new TemplateError(node, `more than ${maxCalls} templates call one another`);
    const value = node.pipe === undefined ? undefined : this.#evaluatePipeline(dot, node.pipe);
    const variables = this.#variables;
    this.#variables = [{ name: '$', value }];
    this.#executeNodes(value, nodes);
    this.#variables = variables;
    this.#calls--;
  }

  #executeRange(dot: GoValue, node: BranchNode): LoopInterruption {
    const value = this.#evaluatePipeline(dot, node.pipe);
    const entries = this.#entries(value, node);
    const scope = this.#variables.length;
    let isEmpty = true;
    for (const [key, element] of entries) {
      isEmpty = false;
      this.#countStep(node);
      this.#setLoopVariables(node.pipe, key, element);
      const interruption = this.#executeNodes(element, node.then);
      this.#variables.length = scope;
      if (interruption === 'break') break;
    }
    const interruption = isEmpty ? this.#executeNodes(dot, node.otherwise) : undefined;
    // As in Go, `break` in the `else` of a loop ends that loop, and `continue` belongs to the loop around it.
    return interruption === 'break' ? undefined : interruption;
  }

  #entries(value: GoValue, { pipe }: BranchNode): Iterable<readonly [GoValue, GoValue]> {
    if (value === undefined || value === null) return [];
    if (isList(value)) return value.map((element, index) => [BigInt(index), element] as const);
    if (value instanceof GoMap) return value.sortedEntries();
    if (typeof value === 'bigint') {
      if (pipe.variables.length > 1)
        throw new TemplateError(pipe, `can't use ${value} to iterate over more than one variable`);
      return integersBelow(value);
    }
    throw new TemplateError(pipe, `range can't iterate over a value of type ${typeName(value)}`);
  }

  #setLoopVariables({ variables, assigns }: PipeNode, key: GoValue, element: GoValue): void {
    const values = variables.length > 1 ? [key, element] : [element];
    for (const [index, name] of variables.entries()) {
      // New variables are the innermost ones.
      const variable = assigns
        ? this.#variables.findLast((candidate) => candidate.name === name)
        : this.#variables.at(index - variables.length);
      variable!.value = values[index];
    }
  }

  #evaluatePipeline(dot: GoValue, pipe: PipeNode): GoValue {
    let value: FinalArgument = noFinalValue;
    // A pipeline that results in nil has no value.
    for (const command of pipe.commands) value = this.#evaluateCommand(dot, command, value) ?? undefined;
    const result = value === noFinalValue ? undefined : value;
    for (const name of pipe.variables) {
      if (pipe.assigns) this.#variable(name, pipe).value = result;
      else this.#variables.push({ name, value: result });
    }
    return result;
  }

  #variable(name: string, position: Position): Variable {
    const variable = this.#variables.findLast((candidate) => candidate.name === name);
    if (variable === undefined) throw new TemplateError(position, `undefined variable ${JSON.stringify(name)}`);
    return variable;
  }

  #evaluateCommand(dot: GoValue, { operands }: CommandNode, final: FinalArgument): GoValue {
    const [firstOperand] = operands;
    const hasArguments = operands.length > 1 || final !== noFinalValue;
    switch (firstOperand.is) {
      case 'function':
        return this.#evaluateFunction(dot, firstOperand, operands.slice(1), final);
      case 'field':
      case 'chain':
        return this.#evaluateOperand(dot, firstOperand, hasArguments);
      case 'variable':
        if (firstOperand.fields.length > 0) return this.#evaluateOperand(dot, firstOperand, hasArguments);
        break;
      case 'nil':
        throw new TemplateError(firstOperand, 'nil is not a command');
    }
    if (hasArguments)
      throw new TemplateError(firstOperand, `${nameOf(firstOperand)} is not a function and takes no arguments`);
    return this.#evaluateOperand(dot, firstOperand);
  }

  #evaluateOperand(dot: GoValue, operand: OperandNode, hasArguments = false): GoValue {
    switch (operand.is) {
      case 'dot':
        return dot;
      case 'nil':
        return null;
      case 'literal':
        return operand.value;
      case 'function':
        return this.#evaluateFunction(dot, operand, [], noFinalValue);
      case 'pipe':
        return this.#evaluatePipeline(dot, operand);
      case 'field':
        return this.#fieldOf(dot, operand, hasArguments);
      case 'variable':
        return this.#fieldOf(this.#variable(operand.name, operand).value, operand, hasArguments);
      case 'chain':
        return this.#fieldOf(this.#evaluateOperand(dot, operand.of), operand, hasArguments);
    }
  }

  #fieldOf(receiver: GoValue, { fields, line, column }: FieldAccess, hasArguments: boolean): GoValue {
    let value = receiver;
    for (const [index, name] of fields.entries()) {
      if (value === undefined) return undefined;
      const isMethodCall = hasArguments && index === fields.length - 1;
      const position = { line, column };
      if (
        this.#isEvaluatingCondition &&
        value instanceof GoStruct &&
        !value.fields.has(name) &&
        value.onUnknownInCondition
      ) {
        value.onUnknownInCondition(name, position);
        return undefined;
      }
      value = readField(value, name, isMethodCall, position);
    }
    return value;
  }

  #evaluateFunction(
    dot: GoValue,
    functionNode: OperandNode & { is: 'function' },
    operands: readonly OperandNode[],
    final: FinalArgument,
  ): GoValue {
    const { name } = functionNode;
    const called = this.#functions.get(name)!;
    const count = operands.length + (final === noFinalValue ? 0 : 1);
    checkCount(functionNode, called, count);
    if (name === 'and' || name === 'or') return this.#evaluateShortCircuit(dot, name, operands, final);
    const values = operands.map((operand) => this.#evaluateOperand(dot, operand));
    if (final !== noFinalValue) values.push(final);
    if (called.takesText && typeof values[0] !== 'string') {
      throw new TemplateError(operands[0] ?? functionNode, `${name} needs a string, got ${typeName(values[0])}`);
    }
    this.#checkValues(values, functionNode);
    try {
      const result = called.call(values);
      this.#checkValues([result], functionNode);
      return result;
    } catch (error) {
      if (!(error instanceof FunctionError)) throw error;
      throw new TemplateError(functionNode, `${name}: ${error.message}`);
    }
  }

  #evaluateShortCircuit(
    dot: GoValue,
    name: 'and' | 'or',
    operands: readonly OperandNode[],
    final: FinalArgument,
  ): GoValue {
    let value: GoValue;
    for (const operand of operands) {
      value = this.#evaluateOperand(dot, operand);
      if (isTruthy(value) === (name === 'or')) return value;
    }
    return final === noFinalValue ? value : final;
  }
}

function checkCount(
  functionNode: OperandNode & { is: 'function' },
  { min, max }: TemplateFunction,
  count: number,
): void {
  if (count >= min && count <= (max ?? count)) return;
  const expected = max === undefined ? `at least ${min}` : max === min ? `${min}` : `${min} to ${max}`;
  throw new TemplateError(
    functionNode,
    `wrong number of arguments for ${functionNode.name}: expected ${expected}, got ${count}`,
  );
}

interface FieldAccess extends Position {
  readonly fields: readonly string[];
}

function readField(value: GoValue, name: string, isMethodCall: boolean, position: Position): GoValue {
  if (value instanceof GoMap || (value instanceof GoStruct && value.fields.has(name))) {
    if (isMethodCall) throw new TemplateError(position, `.${name} is not a function and takes no arguments`);
    return value instanceof GoMap ? value.get(name) : value.fields.get(name);
  }
  if (value instanceof GoStruct)
    throw new TemplateError(position, `unknown field ${JSON.stringify(name)} of ${value.typeName}`);
  if (value === null) throw new TemplateError(position, `field ${JSON.stringify(name)} of nil`);
  throw new TemplateError(position, `field ${JSON.stringify(name)} of a value of type ${typeName(value)}`);
}

function nameOf(operand: OperandNode): string {
  switch (operand.is) {
    case 'literal':
      return operand.text;
    case 'variable':
      return operand.name;
    case 'dot':
      return '.';
    default:
      return 'a pipeline in parentheses';
  }
}

function* integersBelow(limit: bigint): Generator<readonly [undefined, bigint]> {
  for (let integer = 0n; integer < limit; integer++) yield [undefined, integer];
}
