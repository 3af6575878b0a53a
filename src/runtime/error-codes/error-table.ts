/** docs/errors.md is generated from the tables of these. */
export interface ErrorMeaning {
  /** What is wrong, in one clause. Errors of programs begin with it. */
  readonly meaning: string;
  readonly action: string;
}

export type ErrorTable = Readonly<Record<string, ErrorMeaning>>;
