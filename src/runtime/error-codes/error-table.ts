/** docs/errors.md is generated from tables of these meanings. */
export interface ErrorMeaning {
  /** What is wrong, in one clause. Errors of programs begin with it. */
  readonly meaning: string;
  readonly action: string;
}

export type ErrorTable = Readonly<Record<string, ErrorMeaning>>;
