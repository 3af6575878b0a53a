import { createReadStream } from 'node:fs';
import { basename } from 'node:path';
import { Readable } from 'node:stream';
import { maxLineLength } from '../trace/line-splitter.ts';
import { openTrace } from '../trace/read-trace.ts';
import { parseTraceLine } from '../trace/trace-line.ts';
import type { PageSource } from './page-source.ts';

/** A trace file with its rotated part. Its text is unchanged, because the reader validates it. */
export function fileSource(path: string, name = basename(path)): PageSource {
  const open = async () => {
    const reading = await openTrace(path);
    await reading.close();
    return reading;
  };
  return {
    name,
    kind: 'file',
    place: path,
    header: async () => (await open()).header,
    read: async () => Readable.from(wholeLines((await open()).files), { objectMode: false }),
  };
}

const newline = 0x0a;

/**
 * The lines of files in order, without an incomplete last line. Only the current line is buffered. A line that is too
 * long for a record is returned in pieces, and the reader rejects it.
 */
async function* wholeLines(files: readonly string[]): AsyncGenerator<Buffer> {
  for (const file of files) {
    let held: Buffer[] = [];
    let heldBytes = 0;
    for await (const chunk of createReadStream(file, { highWaterMark: 256 * 1024 }) as AsyncIterable<Buffer>) {
      const end = chunk.lastIndexOf(newline) + 1;
      if (end > 0 || heldBytes > maxLineLength) {
        yield* held;
        held = [];
        heldBytes = 0;
      }
      if (end > 0) yield chunk.subarray(0, end);
      if (end < chunk.length) held.push(chunk.subarray(end));
      heldBytes += chunk.length - end;
    }
    const rest = Buffer.concat(held);
    // Only the newline may be missing.
    if (typeof parseTraceLine(rest.toString('utf8')) !== 'string') yield Buffer.concat([rest, Buffer.from('\n')]);
  }
}
