/** Far longer than any line of a program (runtime/trace/redact.ts). A longer line would exhaust the memory before its validation. */
export const maxLineLength = 64 * 1024 * 1024;

export class LineTooLong extends Error {
  override name = 'LineTooLong';

  constructor() {
    super(`the line is longer than ${maxLineLength / 1024 / 1024} million characters, so it is not a trace record`);
  }
}

/** Splits text in pieces of any length into lines. */
export class LineSplitter {
  readonly #segments: string[] = [];
  #segment = '';
  #offset = 0;
  /** The pieces of an incomplete line are joined once. */
  #partialSegments: string[] = [];
  #partialLength = 0;

  push(text: string): void {
    if (text !== '') this.#segments.push(text);
  }

  /**
   * @returns `undefined` if the next line is incomplete
   * @throws LineTooLong when a line is longer than {@link maxLineLength}
   */
  nextLine(): string | undefined {
    for (;;) {
      const lineEnd = this.#segment.indexOf('\n', this.#offset);
      if (lineEnd !== -1) {
        const line = this.#segment.slice(this.#offset, lineEnd);
        this.#offset = lineEnd + 1;
        if (this.#partialSegments.length === 0) return line;
        const completeLine = [...this.#partialSegments, line].join('');
        this.#partialSegments = [];
        this.#partialLength = 0;
        return completeLine;
      }
      if (this.#offset < this.#segment.length) {
        this.#partialSegments.push(this.#segment.slice(this.#offset));
        this.#partialLength += this.#segment.length - this.#offset;
        this.#offset = this.#segment.length;
      }
      if (this.#partialLength > maxLineLength) throw new LineTooLong();
      const nextSegment = this.#segments.shift();
      if (nextSegment === undefined) return undefined;
      this.#segment = nextSegment;
      this.#offset = 0;
    }
  }

  takeRemainder(): string {
    const text = this.#partialSegments.join('') + this.#segment.slice(this.#offset);
    this.#segment = '';
    this.#offset = 0;
    this.#partialSegments = [];
    this.#partialLength = 0;
    return text;
  }
}
