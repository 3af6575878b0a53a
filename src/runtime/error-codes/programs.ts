import type { ErrorTable } from './error-table.ts';

export const programTable = {
  FLAG_INVALID: {
    meaning: 'invalid flag or environment variable',
    action: 'correct the value; `--help` describes each flag',
  },
  CONFIG_INVALID: {
    meaning: 'invalid configuration',
    action: 'correct the file, line and field that the message names',
  },
  FILE_UNREADABLE: {
    meaning: 'cannot read file',
    action: 'check the path and its permissions',
  },
  FILE_UNWRITABLE: {
    meaning: 'cannot write to folder',
    action: 'choose another folder, or grant write permission',
  },
  PORT_IN_USE: {
    meaning: 'port in use',
    action: 'stop the process that uses the port, or choose another port',
  },
  LISTEN_FAILED: {
    meaning: 'cannot open listener',
    action: 'check the address and the permissions of this user',
  },
  REQUEST_FAILED: {
    meaning: 'request failed',
    action: 'check that the other program runs, and its address and token',
  },
} as const satisfies ErrorTable;
