import type { ErrorTable } from './error-table.ts';

/** Errors of `chartpilot`, the debugger. */
export const debuggerTable = {
  TRACE_INVALID: {
    meaning: 'invalid trace',
    action: 'use a file that `--trace` wrote, unchanged (docs/trace-format.md)',
  },
  MACHINE_INVALID: {
    meaning: 'cannot generate tests for the machine',
    action: 'export the machine that the message describes',
  },
  NOT_DRAWN: {
    meaning: 'cannot draw the machine',
    action: 'use `--format json`, or a smaller machine',
  },
  DIAGRAM_INVALID: {
    meaning: 'invalid sequence diagram',
    action: 'correct the line that the message names (docs/sequence-diagrams.md)',
  },
} as const satisfies ErrorTable;
