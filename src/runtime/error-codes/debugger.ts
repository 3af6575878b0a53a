import type { ErrorTable } from './error-table.ts';

export const debuggerTable = {
  TRACE_INVALID: {
    meaning: 'invalid trace',
    action: 'use a file that `--trace` wrote, unchanged (docs/trace-format.md)',
  },
  MACHINE_INVALID: {
    meaning: 'invalid state machine',
    action: 'correct the module or its samples as the message describes',
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
