import { createReadStream, existsSync } from 'node:fs';
import { ChartpilotError, isSystemError, messageOf } from '../runtime/errors.ts';
import { type TraceHeader, type TraceRecord, traceVersion } from '../runtime/trace.ts';
import { parseTraceLine } from './trace-line.ts';

/** A trace that is being read, oldest record first. */
export interface TraceReading {
  header: TraceHeader;
  /** The files that it is in: the rotated one, if it is there and of the same run, comes first. */
  files: string[];
  /** Throws TRACE_INVALID at a line that is none. To be read once. */
  records: AsyncIterable<TraceRecord>;
  /** `file:line` of a last line that was only half written, as a crash leaves it; known when all is read. */
  cutOff: () => string | undefined;
}

/**
 * Opens a trace file, and the part that rotation has set aside (`<path>.1`) when it belongs to the same run. Reads as
 * it goes: a trace may be larger than the memory.
 *
 * @throws ChartpilotError FILE_UNREADABLE or TRACE_INVALID (not a trace, or of another version).
 */
export async function openTrace(path: string): Promise<TraceReading> {
  const newest = await TraceFile.open(path);
  const rotated = existsSync(`${path}.1`) ? await TraceFile.open(`${path}.1`) : undefined;
  const parts = rotated !== undefined && sameRun(rotated.header, newest.header) ? [rotated, newest] : [newest];
  if (rotated !== undefined && parts.length === 1) await rotated.close();
  return {
    header: newest.header,
    files: parts.map((part) => part.path),
    records: inOrder(parts),
    cutOff: () => newest.cutOff,
  };
}

async function* inOrder(parts: readonly TraceFile[]): AsyncGenerator<TraceRecord> {
  let last = 0;
  for (const part of parts) {
    for await (const record of part.records()) {
      if (record.seq <= last) throw part.invalid(`record ${record.seq} comes after record ${last}`);
      last = record.seq;
      yield record;
    }
  }
}

function sameRun(a: TraceHeader, b: TraceHeader): boolean {
  return a.program === b.program && a.pid === b.pid && a.startedAt === b.startedAt;
}

class TraceFile {
  readonly path: string;
  readonly #lines: AsyncGenerator<Line>;
  #header: TraceHeader | undefined;
  #line = 0;
  cutOff: string | undefined;

  private constructor(path: string) {
    this.path = path;
    this.#lines = linesOf(path);
  }

  static async open(path: string): Promise<TraceFile> {
    const file = new TraceFile(path);
    try {
      const { value: first } = await file.#lines.next();
      file.#line = 1;
      file.#header = file.#readHeader(first?.text);
    } catch (error) {
      await file.close();
      if (error instanceof ChartpilotError) throw error;
      const why = isSystemError(error, 'ENOENT') ? 'it does not exist' : messageOf(error);
      throw new ChartpilotError('FILE_UNREADABLE', `${path}: ${why}`, { cause: error });
    }
    return file;
  }

  get header(): TraceHeader {
    return this.#header!;
  }

  async *records(): AsyncGenerator<TraceRecord> {
    for await (const { text, whole } of this.#lines) {
      this.#line++;
      const line = parseTraceLine(text);
      if (typeof line === 'string') {
        if (whole) throw this.invalid(line);
        this.cutOff = `${this.path}:${this.#line}`;
      } else if (line.kind !== 'header') {
        yield line;
      } else if (!sameRun(line, this.header)) {
        throw this.invalid('a second header: another run begins here; split the file');
      }
    }
  }

  invalid(why: string): ChartpilotError {
    return new ChartpilotError('TRACE_INVALID', `${this.path}:${this.#line}: ${why}`);
  }

  close(): Promise<unknown> {
    return this.#lines.return(undefined);
  }

  #readHeader(text: string | undefined): TraceHeader {
    if (text === undefined) throw this.invalid('the file is empty');
    const line = parseTraceLine(text);
    if (typeof line === 'string') throw this.invalid(`the first line is no trace header: ${line}`);
    if (line.kind !== 'header') throw this.invalid(`the first line is a ${line.kind} record, not the header`);
    if (line.version !== traceVersion) {
      throw new ChartpilotError(
        'TRACE_INVALID',
        `${this.path}:1: the format's version is ${line.version}, this program reads version ${traceVersion}`,
        { remedy: 'use the chartpilot of the release that wrote the trace' },
      );
    }
    return line;
  }
}

interface Line {
  text: string;
  /** Whether its newline is there. */
  whole: boolean;
}

async function* linesOf(path: string): AsyncGenerator<Line> {
  let rest = '';
  for await (const chunk of createReadStream(path, { encoding: 'utf8', highWaterMark: 256 * 1024 })) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop()!;
    for (const text of lines) yield { text, whole: true };
  }
  if (rest !== '') yield { text: rest, whole: false };
}
