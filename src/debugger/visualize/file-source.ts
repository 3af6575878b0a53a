import { createReadStream } from 'node:fs';
import { basename } from 'node:path';
import { Readable } from 'node:stream';
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

/** The lines of files, one file after the other; without a last one that is only half written. */
async function* wholeLines(files: readonly string[]): AsyncGenerator<Buffer> {
  for (const file of files) {
    let rest: Buffer = Buffer.alloc(0);
    for await (const chunk of createReadStream(file, { highWaterMark: 256 * 1024 }) as AsyncIterable<Buffer>) {
      const end = chunk.lastIndexOf(newline) + 1;
      if (end > 0) yield Buffer.concat([rest, chunk.subarray(0, end)]);
      rest = end > 0 ? chunk.subarray(end) : Buffer.concat([rest, chunk]);
    }
    // It may lack only its newline.
    if (typeof parseTraceLine(rest.toString('utf8')) !== 'string') yield Buffer.concat([rest, Buffer.from('\n')]);
  }
}
