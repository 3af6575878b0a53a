import { ChartpilotError } from '../runtime/errors.ts';
import { reserveStandardOutput } from '../runtime/output/outlet.ts';
import { chartpilot } from './chartpilot-commands.ts';
import { runProgram } from './run-program.ts';

/** Exit code for a wrong flag or unreadable input. 1 means that a trace deviates or a machine is broken. */
const usageErrorCode = 2;
const bugExitCode = 70;

// explore, generate, replay and diagram execute a user's module, which may print, and their own output may be JSON.
reserveStandardOutput();
await runProgram(chartpilot(), {
  misused: usageErrorCode,
  failed: (error) => (error instanceof ChartpilotError ? usageErrorCode : bugExitCode),
});
