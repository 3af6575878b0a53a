/** `out` is the result, `error` are errors and warnings. */
export interface CommandOutput {
  out: (text: string) => void;
  error: (text: string) => void;
}
