import { ChartpilotError } from '../../runtime/errors.ts';
import { isSameRun, type TraceHeader, type TraceRecord } from '../../runtime/trace/trace.ts';
import { LineSplitter, LineTooLong } from './line-splitter.ts';
import { notJson, TraceLineReader } from './trace-line.ts';

/** One file of a trace, or another stream of its text, that is being read. */
export class TraceFilePart {
  readonly name: string;
  readonly #lineSource: AsyncGenerator<Line>;
  readonly #reader = new TraceLineReader();
  #header: TraceHeader | undefined;
  #lineNumber = 0;
  /** `file:line` of incomplete lines. */
  readonly cutOff: string[] = [];

  private constructor(name: string, text: AsyncIterable<string | Buffer>) {
    this.name = name;
    this.#lineSource = linesOf(text, (reason) => this.invalidLineError(reason, this.#lineNumber + 1));
  }

  /** @throws ChartpilotError TRACE_INVALID if the header is missing, or of an unsupported version */
  static async open(name: string, text: AsyncIterable<string | Buffer>): Promise<TraceFilePart> {
    const tracePart = new TraceFilePart(name, text);
    try {
      const { value: firstLine } = await tracePart.#lineSource.next();
      tracePart.#lineNumber = 1;
      tracePart.#header = tracePart.#readHeader(firstLine?.text);
    } catch (error) {
      await tracePart.close();
      throw error;
    }
    return tracePart;
  }

  get header(): TraceHeader {
    return this.#header!;
  }

  /**
   * Ignores an incomplete line before missing records, because a full disk leaves one in the middle.
   *
   * @param afterSeq number of the last record of the previous part
   */
  async *records(afterSeq?: number): AsyncGenerator<TraceRecord> {
    let lastSeq = afterSeq ?? 0;
    let incompleteLine: { line: number; why: string } | undefined;
    for await (const { text, isComplete } of this.#lineSource) {
      this.#lineNumber++;
      if (text === '') continue;
      const line = this.#reader.read(text);
      if (typeof line === 'string') {
        if (incompleteLine !== undefined) throw this.invalidLineError(incompleteLine.why, incompleteLine.line);
        // Valid JSON was written completely, so an invalid record is an error. So is a line that does not begin like a
        // record.
        if (isComplete && (line !== notJson || !'{"'.startsWith(text.slice(0, 2)))) throw this.invalidLineError(line);
        incompleteLine = { line: this.#lineNumber, why: line };
        continue;
      }
      if (line.kind === 'header') {
        if (!isSameRun(this.header, line))
          throw this.invalidLineError('second header: another run starts here; split the file');
        continue;
      }
      if (line.seq <= lastSeq)
        throw this.invalidLineError(`records out of order: record ${line.seq} follows record ${lastSeq}`);
      if (incompleteLine !== undefined) {
        if (line.seq === lastSeq + 1) throw this.invalidLineError(incompleteLine.why, incompleteLine.line);
        this.#recordIncompleteLine(incompleteLine.line);
        incompleteLine = undefined;
      }
      lastSeq = line.seq;
      yield line;
    }
    if (incompleteLine !== undefined) this.#recordIncompleteLine(incompleteLine.line);
  }

  invalidLineError(reason: string, line = this.#lineNumber): ChartpilotError {
    return new ChartpilotError('TRACE_INVALID', `${this.name}:${line}: ${reason}`, {
      fields: { path: this.name, line },
    });
  }

  close(): Promise<unknown> {
    return this.#lineSource.return(undefined);
  }

  #recordIncompleteLine(line: number): void {
    this.cutOff.push(`${this.name}:${line}`);
  }

  #readHeader(text: string | undefined): TraceHeader {
    if (text === undefined) throw this.invalidLineError('empty file');
    const line = this.#reader.read(text);
    if (typeof line === 'string') throw this.invalidLineError(`expected a trace header in the first line: ${line}`);
    if (line.kind !== 'header')
      throw this.invalidLineError(`expected a trace header in the first line, got a record of kind ${line.kind}`);
    return line;
  }
}

interface Line {
  text: string;
  isComplete: boolean;
}

export async function* linesOf(
  text: AsyncIterable<string | Buffer>,
  refusal: (why: string) => Error,
): AsyncGenerator<Line> {
  const decoder = new TextDecoder();
  const lineSplitter = new LineSplitter();
  const takeLine = (): string | undefined => {
    try {
      return lineSplitter.nextLine();
    } catch (error) {
      throw error instanceof LineTooLong ? refusal(error.message) : error;
    }
  };
  for await (const chunk of text) {
    lineSplitter.push(typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true }));
    for (let line = takeLine(); line !== undefined; line = takeLine()) yield { text: line, isComplete: true };
  }
  const partialLine = lineSplitter.takeRemainder();
  if (partialLine !== '') yield { text: partialLine, isComplete: false };
}
