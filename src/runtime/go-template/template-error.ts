/** Position in the text of a template, both from 1. The column counts characters. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** A template that cannot be read, or whose execution fails. */
export class TemplateError extends Error {
  readonly line: number;
  readonly column: number;

  constructor({ line, column }: Position, what: string) {
    super(what);
    this.line = line;
    this.column = column;
  }
}

/** What is wrong with the arguments of a function. */
export class FunctionError extends Error {}
