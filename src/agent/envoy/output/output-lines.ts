/** The pipe is read even if the lines cannot be processed. */
import type { Readable } from 'node:stream';

/** Longer lines are split, so that a line without end does not fill the memory. */
const maxLineBytes = 64 * 1024;
const lineEnd = 10;

/** Resolves when the stream has ended; immediately if `stream` is null. */
export function readLines(stream: Readable | null, onLine: (line: string) => void): Promise<void> {
  return readLineChunks(stream, (lines) => {
    for (const line of lines.toString().replace(/\n$/, '').split('\n')) onLine(line.replace(/\r$/, ''));
    return undefined;
  });
}

/** Passes on several unchanged lines together. A returned promise pauses the stream. */
export function readLineChunks(
  stream: Readable | null,
  onLines: (lines: Buffer) => Promise<void> | undefined,
): Promise<void> {
  if (stream === null) return Promise.resolve();
  let incompleteLine: Buffer = Buffer.alloc(0);
  const forwardLines = (bytes: Buffer): void => {
    if (bytes.length === 0) return;
    const readyToContinue = onLines(bytes.at(-1) === lineEnd ? bytes : Buffer.concat([bytes, Buffer.from('\n')]));
    if (readyToContinue === undefined) return;
    stream.pause();
    const resume = (): unknown => stream.resume();
    // Also after an error, because Envoy blocks on a full pipe.
    readyToContinue.then(resume, resume);
  };
  stream.on('data', (chunk: Buffer) => {
    const bytes = incompleteLine.length === 0 ? chunk : Buffer.concat([incompleteLine, chunk]);
    const endIndex = bytes.lastIndexOf(lineEnd) + 1;
    const isTooLong = bytes.length - endIndex > maxLineBytes;
    forwardLines(isTooLong ? bytes : bytes.subarray(0, endIndex));
    incompleteLine = isTooLong ? Buffer.alloc(0) : bytes.subarray(endIndex);
  });
  return new Promise((resolve) => {
    stream.once('close', () => {
      forwardLines(incompleteLine);
      resolve();
    });
    // The exit that breaks the pipe is reported separately.
    stream.on('error', () => stream.destroy());
  });
}
