/** A trace as it comes in: text in pieces of any length, read line by line. */
import { LineSplitter, LineTooLong } from '../../../src/debugger/trace/line-splitter.ts';
import { notJson, TraceLineReader } from '../../../src/debugger/trace/trace-line.ts';
import type { TraceHeader, TraceRecord } from '../../../src/runtime/trace/trace.ts';

/** What is wrong with a trace, and where. What was read before it is good. */
export class TraceProblem extends Error {
  readonly line: number;

  constructor(line: number, why: string) {
    super(`line ${line}: ${why}`);
    this.name = 'TraceProblem';
    this.line = line;
  }
}

/** Records that were read, and the text of each. */
export interface Incoming {
  readonly records: readonly TraceRecord[];
  /** Of this version of the format, whatever that of the trace is. */
  readonly lines: readonly string[];
}

/**
 * Reads lines. Give it text with {@link TraceStream.push}; take records with {@link TraceStream.read}, which does as much
 * as it is told to: a page must stay alive while it reads.
 */
export class TraceStream {
  header: TraceHeader | undefined;
  /** Numbers of lines that were only half written, as a crash leaves the last one, or a full disk one in the middle. */
  readonly cutOff: number[] = [];
  readonly #reader = new TraceLineReader();
  readonly #lines = new LineSplitter();
  /** Of a line that was reached; what is good before it is answered first. */
  #problem: unknown;
  #line = 0;
  #lastSeq = 0;
  /** A line that is not JSON: it was cut, if records are missing behind it. */
  #half: { readonly line: number; readonly why: string } | undefined;

  push(text: string): void {
    this.#lines.push(text);
  }

  /**
   * Records that have come, as long as `goOn` says so; it is asked now and then. Answers an empty list when there is no
   * whole line left.
   *
   * @throws TraceProblem at a line that is none, after the records before it were answered.
   */
  read(goOn: () => boolean): Incoming {
    if (this.#problem !== undefined) throw this.#problem;
    const records: TraceRecord[] = [];
    const lines: string[] = [];
    for (let count = 1; ; count++) {
      try {
        const text = this.#nextLine();
        if (text === undefined) return { records, lines };
        const record = this.#take(text);
        if (record !== undefined) {
          records.push(record);
          lines.push(this.#reader.isOfThisVersion ? text : JSON.stringify(record));
        }
      } catch (error) {
        if (records.length === 0) throw error;
        this.#problem = error;
        return { records, lines };
      }
      if (count % 64 === 0 && !goOn()) return { records, lines };
    }
  }

  /** No more text will come: a last line without its newline is looked at. */
  end(): Incoming {
    const text = this.#lines.rest();
    if (text.trim() !== '') {
      if (typeof this.#reader.read(text) !== 'string') {
        const record = this.#take(text);
        return record === undefined ? nothing : { records: [record], lines: [JSON.stringify(record)] };
      }
      this.#line++;
      this.cutOff.push(this.#line);
    }
    if (this.#half !== undefined) this.cutOff.unshift(this.#half.line);
    return nothing;
  }

  #nextLine(): string | undefined {
    try {
      return this.#lines.next();
    } catch (error) {
      throw error instanceof LineTooLong ? new TraceProblem(this.#line + 1, error.message) : error;
    }
  }

  #take(text: string): TraceRecord | undefined {
    this.#line++;
    if (text === '') return undefined;
    const line = this.#reader.read(text);
    if (typeof line === 'string') {
      if (line !== notJson || this.header === undefined) throw new TraceProblem(this.#line, line);
      this.#half ??= { line: this.#line, why: line };
      return undefined;
    }
    if (line.kind === 'header') {
      this.#takeHeader(line);
      return undefined;
    }
    if (this.header === undefined) throw new TraceProblem(this.#line, `a ${line.kind} record comes before the header`);
    if (line.seq <= this.#lastSeq) {
      throw new TraceProblem(this.#line, `records out of order: record ${line.seq} follows record ${this.#lastSeq}`);
    }
    if (this.#half !== undefined) {
      // Nothing is missing: the line is no record that was cut.
      if (line.seq === this.#lastSeq + 1) throw new TraceProblem(this.#half.line, this.#half.why);
      this.cutOff.push(this.#half.line);
      this.#half = undefined;
    }
    this.#lastSeq = line.seq;
    return line;
  }

  #takeHeader(header: TraceHeader): void {
    if (this.header === undefined) {
      this.header = header;
      return;
    }
    // A rotated trace has its header again in the middle; that of another program has no business here.
    const { program, pid, startedAt } = this.header;
    if (header.program !== program || header.pid !== pid || header.startedAt !== startedAt) {
      throw new TraceProblem(this.#line, 'second header: another run starts here; split the file');
    }
  }
}

const nothing: Incoming = { records: [], lines: [] };
