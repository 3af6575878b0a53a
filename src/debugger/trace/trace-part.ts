import { ChartpilotError } from '../../runtime/errors.ts';
import type { TraceHeader, TraceRecord } from '../../runtime/trace/trace.ts';
import { notJson, TraceLineReader } from './trace-line.ts';

/** One file of a trace, or another stream of its text, that is being read. */
export class TracePart {
  /** As errors name it: the file's path. */
  readonly name: string;
  readonly #lines: AsyncGenerator<Line>;
  readonly #reader = new TraceLineReader();
  #header: TraceHeader | undefined;
  #line = 0;
  /** `file:line` of lines that were left out because their end is missing. */
  readonly cutOff: string[] = [];

  private constructor(name: string, text: AsyncIterable<string | Buffer>) {
    this.name = name;
    this.#lines = linesOf(text);
  }

  /** Reads the header. Throws TRACE_INVALID when there is none, or one of another version. */
  static async begin(name: string, text: AsyncIterable<string | Buffer>): Promise<TracePart> {
    const part = new TracePart(name, text);
    try {
      const { value: first } = await part.#lines.next();
      part.#line = 1;
      part.#header = part.#readHeader(first?.text);
    } catch (error) {
      await part.close();
      throw error;
    }
    return part;
  }

  get header(): TraceHeader {
    return this.#header!;
  }

  isOfRun({ program, pid, startedAt }: TraceHeader): boolean {
    return this.header.program === program && this.header.pid === pid && this.header.startedAt === startedAt;
  }

  /**
   * The records, in the order of their numbers. A line without its end is left out where records are missing behind it: a
   * full disk leaves one in the middle.
   *
   * @param after the last record of the part before, if there is one.
   */
  async *records(after?: number): AsyncGenerator<TraceRecord> {
    let last = after ?? 0;
    let half: { line: number; why: string } | undefined;
    for await (const { text, whole } of this.#lines) {
      this.#line++;
      if (text === '') continue;
      const line = this.#reader.read(text);
      if (typeof line === 'string') {
        if (half !== undefined) throw this.invalid(half.why, half.line);
        // What is JSON was written to its end: it is wrong, not cut.
        if (whole && line !== notJson) throw this.invalid(line);
        half = { line: this.#line, why: line };
        continue;
      }
      if (line.kind === 'header') {
        if (!this.isOfRun(line)) throw this.invalid('a second header: another run begins here; split the file');
        continue;
      }
      if (line.seq <= last) throw this.invalid(`record ${line.seq} comes after record ${last}`);
      if (half !== undefined) {
        if (line.seq === last + 1) throw this.invalid(half.why, half.line);
        this.#leaveOut(half.line);
        half = undefined;
      }
      last = line.seq;
      yield line;
    }
    if (half !== undefined) this.#leaveOut(half.line);
  }

  invalid(why: string, line = this.#line): ChartpilotError {
    return new ChartpilotError('TRACE_INVALID', `${this.name}:${line}: ${why}`);
  }

  close(): Promise<unknown> {
    return this.#lines.return(undefined);
  }

  #leaveOut(line: number): void {
    this.cutOff.push(`${this.name}:${line}`);
  }

  #readHeader(text: string | undefined): TraceHeader {
    if (text === undefined) throw this.invalid('the file is empty');
    const line = this.#reader.read(text);
    if (typeof line === 'string') throw this.invalid(`the first line is no trace header: ${line}`);
    if (line.kind !== 'header') throw this.invalid(`the first line is a ${line.kind} record, not the header`);
    return line;
  }
}

interface Line {
  text: string;
  /** Whether its newline is there. */
  whole: boolean;
}

async function* linesOf(text: AsyncIterable<string | Buffer>): AsyncGenerator<Line> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of text) {
    const lines = (rest + (typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true }))).split('\n');
    rest = lines.pop()!;
    for (const line of lines) yield { text: line, whole: true };
  }
  if (rest !== '') yield { text: rest, whole: false };
}
