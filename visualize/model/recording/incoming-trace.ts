import { LineSplitter, LineTooLong } from '../../../src/debugger/trace/line-splitter.ts';
import { notJson, TraceLineReader } from '../../../src/debugger/trace/trace-line.ts';
import type { TraceHeader, TraceRecord } from '../../../src/runtime/trace/trace.ts';

/** The records before the invalid line are valid. */
export class InvalidTraceLine extends Error {
  readonly line: number;

  constructor(line: number, reason: string) {
    super(`line ${line}: ${reason}`);
    this.name = 'InvalidTraceLine';
    this.line = line;
  }
}

export interface IncomingRecords {
  readonly records: readonly TraceRecord[];
  /** Lines in the current format, whatever the version of the trace is. */
  readonly lines: readonly string[];
}

/** {@link TraceParser.read} stops on request, so that the page stays responsive. */
export class TraceParser {
  header: TraceHeader | undefined;
  /** A crash leaves the last line incomplete; a full disk can leave one in the middle. */
  readonly cutOffLines: number[] = [];
  readonly #reader = new TraceLineReader();
  readonly #lineSplitter = new LineSplitter();
  /** Valid records before the error are returned first. */
  #problem: unknown;
  #lineNumber = 0;
  #lastSeq = 0;
  /** A line that is not JSON. If `seq` then has a gap, the writer cut off the line. */
  #incompleteLine: { readonly line: number; readonly parseError: string } | undefined;

  push(text: string): void {
    this.#lineSplitter.push(text);
  }

  /**
   * @param shouldContinue returns false to stop
   * @throws InvalidTraceLine for an invalid line, after the records before it were returned
   */
  read(shouldContinue: () => boolean): IncomingRecords {
    if (this.#problem !== undefined) throw this.#problem;
    const records: TraceRecord[] = [];
    const lines: string[] = [];
    for (let count = 1; ; count++) {
      try {
        const text = this.#nextLine();
        if (text === undefined) return { records, lines };
        const record = this.#parseLine(text);
        if (record !== undefined) {
          records.push(record);
          lines.push(this.#reader.isCurrentVersion ? text : JSON.stringify(record));
        }
      } catch (error) {
        if (records.length === 0) throw error;
        this.#problem = error;
        return { records, lines };
      }
      if (count % 64 === 0 && !shouldContinue()) return { records, lines };
    }
  }

  /** Parses a last line without newline. */
  end(): IncomingRecords {
    const text = this.#lineSplitter.takeRemainder();
    if (text.trim() !== '') {
      if (typeof this.#reader.read(text) !== 'string') {
        const record = this.#parseLine(text);
        return record === undefined ? noRecords : { records: [record], lines: [JSON.stringify(record)] };
      }
      this.#lineNumber++;
      this.cutOffLines.push(this.#lineNumber);
    }
    if (this.#incompleteLine !== undefined) this.cutOffLines.unshift(this.#incompleteLine.line);
    return noRecords;
  }

  #nextLine(): string | undefined {
    try {
      return this.#lineSplitter.nextLine();
    } catch (error) {
      throw error instanceof LineTooLong ? new InvalidTraceLine(this.#lineNumber + 1, error.message) : error;
    }
  }

  #parseLine(text: string): TraceRecord | undefined {
    this.#lineNumber++;
    if (text === '') return undefined;
    const line = this.#reader.read(text);
    if (typeof line === 'string') {
      if (line !== notJson || this.header === undefined) throw new InvalidTraceLine(this.#lineNumber, line);
      this.#incompleteLine ??= { line: this.#lineNumber, parseError: line };
      return undefined;
    }
    if (line.kind === 'header') {
      this.#takeHeader(line);
      return undefined;
    }
    if (this.header === undefined)
      throw new InvalidTraceLine(this.#lineNumber, `a ${line.kind} record comes before the header`);
    if (line.seq <= this.#lastSeq) {
      throw new InvalidTraceLine(
        this.#lineNumber,
        `records out of order: record ${line.seq} follows record ${this.#lastSeq}`,
      );
    }
    if (this.#incompleteLine !== undefined) {
      // No record is missing, so the line is invalid, not cut off.
      if (line.seq === this.#lastSeq + 1)
        throw new InvalidTraceLine(this.#incompleteLine.line, this.#incompleteLine.parseError);
      this.cutOffLines.push(this.#incompleteLine.line);
      this.#incompleteLine = undefined;
    }
    this.#lastSeq = line.seq;
    return line;
  }

  #takeHeader(header: TraceHeader): void {
    if (this.header === undefined) {
      this.header = header;
      return;
    }
    // A rotated trace repeats its header; a header of another program is an error.
    const { program, pid, startedAt } = this.header;
    if (header.program !== program || header.pid !== pid || header.startedAt !== startedAt) {
      throw new InvalidTraceLine(this.#lineNumber, 'second header: another run starts here; split the file');
    }
  }
}

const noRecords: IncomingRecords = { records: [], lines: [] };
