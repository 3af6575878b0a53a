/** Standard output and standard error of all programs, and how a program ends: after its last words are out. */
import { messageOf } from '../errors.ts';
import { isWithoutReader, LineSink } from './line-sink.ts';
import { openFile, openStandardStream } from './outlet.ts';

/** For a log or a report whose reader is slow. Answers are waited for as long as somebody reads. */
const lastWordsMs = 1_000;
/** An answer could not be given. */
let unanswered: number | undefined;

/**
 * Gives a command whose code 1 has a meaning of its own another one for an answer that could not be written, whatever the
 * answer was.
 */
export function exitUnansweredWith(code: number): void {
  unanswered = code;
}

const living = new Set<LineSink>();

function endsWithProgram(sink: LineSink): LineSink {
  living.add(sink);
  return sink;
}

/** Where answers go, and logs. Opened when it is first written to. */
export const standardOutput = endsWithProgram(new LineSink({ open: () => openStandardStream(1) }));
/** Where a person is told what went wrong. */
export const standardError = endsWithProgram(new LineSink({ open: () => openStandardStream(2) }));

standardOutput.listen({
  failed: (error, printing) => {
    if (printing) endUnanswered(error);
  },
});

/** A file that lines are appended to, and that is made anew when somebody moves it away. */
export function appendTo(path: string): LineSink {
  return endsWithProgram(new LineSink({ open: () => openFile(path) }));
}

/** The reader has left, and needs no more (`chartpilot trace x | head`); or a disk is full, which is said. */
function endUnanswered(error: unknown): never {
  if (!isWithoutReader(error)) {
    standardError.write(`standard output cannot be written: ${messageOf(error)}\n`);
    process.exitCode = unanswered ?? (process.exitCode || 1);
  }
  process.exit();
}

/** Ends the program with `process.exitCode`, whatever still has a handle open; but first lets its output go. */
export async function endProgram(): Promise<never> {
  await Promise.all([...living].map((sink) => sink.end(lastWordsMs)));
  process.exit();
}
