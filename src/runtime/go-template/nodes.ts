import type { Position } from './template-error.ts';

export interface TextNode {
  readonly is: 'text';
  readonly text: string;
}

export interface ActionNode extends Position {
  readonly is: 'action';
  readonly pipe: PipeNode;
}

export interface BranchNode extends Position {
  readonly is: 'if' | 'with' | 'range';
  readonly pipe: PipeNode;
  readonly then: readonly Node[];
  readonly otherwise: readonly Node[];
}

export interface TemplateNode extends Position {
  readonly is: 'template';
  readonly name: string;
  readonly pipe?: PipeNode;
}

export interface LoopControlNode extends Position {
  readonly is: 'break' | 'continue';
}

export type Node = TextNode | ActionNode | BranchNode | TemplateNode | LoopControlNode;

/** Commands that pass on their values, and the variables that receive the last one. */
export interface PipeNode extends Position {
  readonly is: 'pipe';
  readonly variables: readonly string[];
  /** The template uses `=` instead of `:=`. */
  readonly assigns: boolean;
  readonly commands: readonly CommandNode[];
}

/** The first operand, called with the other operands if there are any. */
export interface CommandNode extends Position {
  readonly operands: readonly [OperandNode, ...OperandNode[]];
}

export type OperandNode = Position &
  (
    | { readonly is: 'dot' }
    | { readonly is: 'nil' }
    | { readonly is: 'literal'; readonly value: bigint | number | string | boolean; readonly text: string }
    | { readonly is: 'function'; readonly name: string }
    | { readonly is: 'field'; readonly fields: readonly string[] }
    | { readonly is: 'variable'; readonly name: string; readonly fields: readonly string[] }
    | { readonly is: 'chain'; readonly of: OperandNode; readonly fields: readonly string[] }
    | PipeNode
  );

export type TemplateSet = ReadonlyMap<string, readonly Node[]>;
