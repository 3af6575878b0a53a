/** What a child writes, as lines, however much it is: its pipe is read at once, whatever becomes of the lines. */
import type { Readable } from 'node:stream';

/** Longer ones are cut in pieces: a line without an end must not fill the memory. */
const longestLineBytes = 64 * 1024;
const lineEnd = 10;

/** Each line, without its end. @returns when the stream has ended; at once for an output that is not ours to read */
export function readLines(stream: Readable | null, onLine: (line: string) => void): Promise<void> {
  return readWholeLines(stream, (lines) => {
    for (const line of lines.toString().replace(/\n$/, '').split('\n')) onLine(line.replace(/\r$/, ''));
    return undefined;
  });
}

/**
 * As {@link readLines}, many at once and unchanged, each with its end.
 *
 * @param onLines may say for how long nothing is to be read
 */
export function readWholeLines(
  stream: Readable | null,
  onLines: (lines: Buffer) => Promise<void> | undefined,
): Promise<void> {
  if (stream === null) return Promise.resolve();
  let rest: Buffer = Buffer.alloc(0);
  const give = (bytes: Buffer): void => {
    if (bytes.length === 0) return;
    const relief = onLines(bytes.at(-1) === lineEnd ? bytes : Buffer.concat([bytes, Buffer.from('\n')]));
    if (relief === undefined) return;
    stream.pause();
    void relief.then(() => stream.resume());
  };
  stream.on('data', (chunk: Buffer) => {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const end = bytes.lastIndexOf(lineEnd) + 1;
    const isTooLong = bytes.length - end > longestLineBytes;
    give(isTooLong ? bytes : bytes.subarray(0, end));
    rest = isTooLong ? Buffer.alloc(0) : bytes.subarray(end);
  });
  return new Promise((resolve) => {
    stream.once('close', () => {
      give(rest);
      resolve();
    });
    // A broken pipe is part of an exit, which is reported by itself.
    stream.on('error', () => stream.destroy());
  });
}
