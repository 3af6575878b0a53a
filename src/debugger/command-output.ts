/** Where a command's text goes: `out` is what was asked for, `error` what a person should know besides. */
export interface CommandOutput {
  out: (text: string) => void;
  error: (text: string) => void;
}
