import { createReadStream } from 'node:fs';
import { basename } from 'node:path';
import { Readable } from 'node:stream';
import { maxLineLength } from '../trace/line-splitter.ts';
import { openTrace } from '../trace/read-trace.ts';
import { parseTraceLine } from '../trace/trace-line.ts';
import type { PageSource } from './page-source.ts';

/** The text is unchanged, because the reader validates it. */
export function fileSource(path: string, name = basename(path)): PageSource {
  const openOnce = async () => {
    const openedTrace = await openTrace(path);
    await openedTrace.close();
    return openedTrace;
  };
  return {
    name,
    kind: 'file',
    place: path,
    header: async () => (await openOnce()).header,
    read: async () => Readable.from(wholeLines((await openOnce()).files), { objectMode: false }),
  };
}

const newline = 0x0a;

/** The last line is omitted if it is incomplete. A line that is too long for a record is returned in pieces. */
async function* wholeLines(files: readonly string[]): AsyncGenerator<Buffer> {
  for (const file of files) {
    let heldChunks: Buffer[] = [];
    let heldBytes = 0;
    for await (const chunk of createReadStream(file, { highWaterMark: 256 * 1024 }) as AsyncIterable<Buffer>) {
      const end = chunk.lastIndexOf(newline) + 1;
      if (end > 0 || heldBytes > maxLineLength) {
        yield* heldChunks;
        heldChunks = [];
        heldBytes = 0;
      }
      if (end > 0) yield chunk.subarray(0, end);
      if (end < chunk.length) heldChunks.push(chunk.subarray(end));
      heldBytes += chunk.length - end;
    }
    const lastLine = Buffer.concat(heldChunks);
    // Keeps a last line that lacks only its newline.
    if (typeof parseTraceLine(lastLine.toString('utf8')) !== 'string')
      yield Buffer.concat([lastLine, Buffer.from('\n')]);
  }
}
