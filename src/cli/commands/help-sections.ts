import type { Command } from 'commander';

type Row = readonly [term: string, description: string];

export interface HelpSections {
  /** Complete command lines, which help-examples.test.ts runs. */
  readonly examples?: readonly string[];
  readonly environment?: readonly Row[];
  readonly limits?: readonly Row[];
  readonly exitCodes: readonly Row[];
}

export function addHelpSections(
  command: Command,
  { examples = [], environment = [], limits = [], exitCodes }: HelpSections,
): Command {
  const sections = [
    [examples.length === 1 ? 'Example:' : 'Examples:', ...examples.map((line) => `  ${line}`)],
    ['Environment:', ...columnsOf(environment)],
    ['Limits (environment):', ...columnsOf(limits)],
    ['Exit codes:', ...columnsOf(exitCodes)],
  ];
  const shownSections = sections.filter((lines) => lines.length > 1).map((lines) => lines.join('\n'));
  return command.addHelpText('after', `\n${shownSections.join('\n\n')}`);
}

function columnsOf(rows: readonly Row[]): string[] {
  const width = Math.max(0, ...rows.map(([term]) => term.length));
  return rows.map(([term, description]) => `  ${term.padEnd(width)}  ${description}`);
}
