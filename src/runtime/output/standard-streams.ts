import { messageOf } from '../errors.ts';
import { isClosedPipe, LineSink } from './line-sink.ts';
import { openFile, openStandardStream } from './outlet.ts';

/** Limits the wait for a slow reader of a log or a report. Output of commands is awaited as long as it has a reader. */
const maxFlushMs = 1_000;
let outputFailureCode: number | undefined;

/** Exit code if the output cannot be written, for a command whose exit code 1 has another meaning. */
export function setOutputFailureCode(code: number): void {
  outputFailureCode = code;
}

const openSinks = new Set<LineSink>();

function closeSinkOnExit(sink: LineSink): LineSink {
  openSinks.add(sink);
  return sink;
}

export const standardOutput = closeSinkOnExit(new LineSink({ open: () => openStandardStream(1) }));
export const standardError = closeSinkOnExit(new LineSink({ open: () => openStandardStream(2) }));

standardOutput.listen({
  failed: (error, printing) => {
    if (printing) exitOnOutputFailure(error);
  },
});

/** The file is created again after it was moved. */
export function openAppendingSink(path: string): LineSink {
  return closeSinkOnExit(new LineSink({ open: () => openFile(path) }));
}

/** A reader may close the pipe (`chartpilot trace x | head`), which is not reported. */
function exitOnOutputFailure(error: unknown): never {
  if (!isClosedPipe(error)) {
    standardError.write(`standard output cannot be written: ${messageOf(error)}\n`);
    process.exitCode = outputFailureCode ?? (process.exitCode || 1);
  }
  process.exit();
}

/** Ends the program with `process.exitCode`, even if handles are open, after its output is written. */
export async function endProgram(): Promise<never> {
  await Promise.all([...openSinks].map((sink) => sink.end(maxFlushMs)));
  process.exit();
}
