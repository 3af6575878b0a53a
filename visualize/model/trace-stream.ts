/** A trace as it comes in: text in pieces of any length, read line by line. */
import { parseTraceLine } from '../../src/debugger/trace/trace-line.ts';
import { type TraceHeader, type TraceRecord, traceVersion } from '../../src/runtime/trace.ts';

/** What is wrong with a trace, and where. What was read before it is good. */
export class TraceProblem extends Error {
  readonly line: number;

  constructor(line: number, why: string) {
    super(`line ${line}: ${why}`);
    this.name = 'TraceProblem';
    this.line = line;
  }
}

/**
 * Reads lines. Give it text with {@link TraceStream.push}; take records with {@link TraceStream.read}, which does as much
 * as it is told to: a page must stay alive while it reads.
 */
export class TraceStream {
  header: TraceHeader | undefined;
  /** The last line was only half written, as a crash leaves it: its number. Known after {@link TraceStream.end}. */
  cutOff: number | undefined;
  readonly #texts: string[] = [];
  /** Of a line that was reached; what is good before it is answered first. */
  #problem: unknown;
  #rest = '';
  #from = 0;
  #line = 0;
  #lastSeq = 0;

  push(text: string): void {
    if (text !== '') this.#texts.push(text);
  }

  /**
   * Records that have come, as long as `goOn` says so; it is asked now and then. Answers an empty list when there is no
   * whole line left.
   *
   * @throws TraceProblem at a line that is none, after the records before it were answered.
   */
  read(goOn: () => boolean): TraceRecord[] {
    if (this.#problem !== undefined) throw this.#problem;
    const records: TraceRecord[] = [];
    for (let count = 1; ; count++) {
      const text = this.#nextLine();
      if (text === undefined) return records;
      try {
        const record = this.#take(text);
        if (record !== undefined) records.push(record);
      } catch (error) {
        if (records.length === 0) throw error;
        this.#problem = error;
        return records;
      }
      if (count % 64 === 0 && !goOn()) return records;
    }
  }

  /** No more text will come: a last line without its newline is looked at. */
  end(): TraceRecord[] {
    const text = this.#rest.slice(this.#from);
    this.#rest = '';
    this.#from = 0;
    if (text.trim() === '') return [];
    this.#line++;
    if (typeof parseTraceLine(text) === 'string') {
      this.cutOff = this.#line;
      return [];
    }
    this.#line--;
    const record = this.#take(text);
    return record === undefined ? [] : [record];
  }

  #nextLine(): string | undefined {
    for (;;) {
      const end = this.#rest.indexOf('\n', this.#from);
      if (end !== -1) {
        const line = this.#rest.slice(this.#from, end);
        this.#from = end + 1;
        return line;
      }
      const more = this.#texts.shift();
      if (more === undefined) return undefined;
      this.#rest = this.#rest.slice(this.#from) + more;
      this.#from = 0;
    }
  }

  #take(text: string): TraceRecord | undefined {
    this.#line++;
    if (text === '') return undefined;
    const line = parseTraceLine(text);
    if (typeof line === 'string') throw new TraceProblem(this.#line, line);
    if (line.kind === 'header') {
      this.#takeHeader(line);
      return undefined;
    }
    if (this.header === undefined) throw new TraceProblem(this.#line, `a ${line.kind} record comes before the header`);
    if (line.seq <= this.#lastSeq) {
      throw new TraceProblem(this.#line, `record ${line.seq} comes after record ${this.#lastSeq}`);
    }
    this.#lastSeq = line.seq;
    return line;
  }

  #takeHeader(header: TraceHeader): void {
    if (header.version !== traceVersion) {
      throw new TraceProblem(
        this.#line,
        `the format's version is ${header.version}, this page reads version ${traceVersion}: use the chartpilot of the release that wrote the trace`,
      );
    }
    if (this.header === undefined) {
      this.header = header;
      return;
    }
    // A rotated trace has its header again in the middle; that of another program has no business here.
    const { program, pid, startedAt } = this.header;
    if (header.program !== program || header.pid !== pid || header.startedAt !== startedAt) {
      throw new TraceProblem(this.#line, 'a second header: another run begins here; split the file');
    }
  }
}
