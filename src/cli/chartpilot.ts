/** `chartpilot`: the debugger's command line. */
import { ChartpilotError } from '../runtime/errors.ts';
import { reserveStandardOutput } from '../runtime/output/outlet.ts';
import { chartpilot } from './chartpilot-commands.ts';
import { runProgram } from './run-program.ts';

/** A wrong flag, or something that cannot be read. 1 has a meaning of its own: a trace departs, a machine is broken. */
const misused = 2;
const bug = 70;

// explore, generate, replay and diagram execute a module of the user, which may print; their answers may be JSON.
reserveStandardOutput();
await runProgram(chartpilot(), { misused, failed: (error) => (error instanceof ChartpilotError ? misused : bug) });
