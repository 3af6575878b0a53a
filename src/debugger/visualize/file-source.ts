import { createReadStream } from 'node:fs';
import { basename } from 'node:path';
import { Readable } from 'node:stream';
import { longestLine } from '../trace/line-splitter.ts';
import { openTrace } from '../trace/read-trace.ts';
import { parseTraceLine } from '../trace/trace-line.ts';
import type { PageSource } from './page-source.ts';

/** A trace file, and the part of it that rotation has set aside. Its text is passed on as it is: who reads it checks it. */
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
 * The lines of files, one file after the other; without a last one that is only half written. What is held back is the
 * line whose end has not come. One that is too long to be a record is passed on as it comes: who reads it refuses it.
 */
async function* wholeLines(files: readonly string[]): AsyncGenerator<Buffer> {
  for (const file of files) {
    let held: Buffer[] = [];
    let heldBytes = 0;
    for await (const chunk of createReadStream(file, { highWaterMark: 256 * 1024 }) as AsyncIterable<Buffer>) {
      const end = chunk.lastIndexOf(newline) + 1;
      if (end > 0 || heldBytes > longestLine) {
        yield* held;
        held = [];
        heldBytes = 0;
      }
      if (end > 0) yield chunk.subarray(0, end);
      if (end < chunk.length) held.push(chunk.subarray(end));
      heldBytes += chunk.length - end;
    }
    const rest = Buffer.concat(held);
    // It may lack only its newline.
    if (typeof parseTraceLine(rest.toString('utf8')) !== 'string') yield Buffer.concat([rest, Buffer.from('\n')]);
  }
}
