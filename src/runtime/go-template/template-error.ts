/** Both numbers are 1-based. The column counts characters. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

export class TemplateError extends Error {
  readonly line: number;
  readonly column: number;

  constructor({ line, column }: Position, message: string) {
    super(message);
    this.line = line;
    this.column = column;
  }
}

export class FunctionError extends Error {}
