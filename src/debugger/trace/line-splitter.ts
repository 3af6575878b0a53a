/** Far more than a program writes (runtime/trace/redact.ts); what is longer would take the memory before anybody knows what it is. */
export const longestLine = 64 * 1024 * 1024;

/** What is wrong with a line that {@link LineSplitter} gives up. */
export class LineTooLong extends Error {
  override name = 'LineTooLong';

  constructor() {
    super(`the line is longer than ${longestLine / 1024 / 1024} million characters, so it is not a trace record`);
  }
}

/**
 * Text in pieces of any length, cut into lines. Each piece is looked at once, however many of them a line is in: a line of
 * 100 MB would otherwise be read once for each of its pieces.
 */
export class LineSplitter {
  readonly #pieces: string[] = [];
  /** The piece that is being read, and how far it was. */
  #piece = '';
  #from = 0;
  /** Pieces of a line whose end has not come: joined once, when it has. */
  #begun: string[] = [];
  #begunLength = 0;

  push(text: string): void {
    if (text !== '') this.#pieces.push(text);
  }

  /**
   * @returns the next line, without its end; none as long as its end has not come
   * @throws LineTooLong when a line is longer than {@link longestLine}
   */
  next(): string | undefined {
    for (;;) {
      const end = this.#piece.indexOf('\n', this.#from);
      if (end !== -1) {
        const line = this.#piece.slice(this.#from, end);
        this.#from = end + 1;
        if (this.#begun.length === 0) return line;
        const whole = [...this.#begun, line].join('');
        this.#begun = [];
        this.#begunLength = 0;
        return whole;
      }
      if (this.#from < this.#piece.length) {
        this.#begun.push(this.#piece.slice(this.#from));
        this.#begunLength += this.#piece.length - this.#from;
        this.#from = this.#piece.length;
      }
      if (this.#begunLength > longestLine) throw new LineTooLong();
      const more = this.#pieces.shift();
      if (more === undefined) return undefined;
      this.#piece = more;
      this.#from = 0;
    }
  }

  /** Takes what came after the last end of a line; no more text will come. */
  rest(): string {
    const text = this.#begun.join('') + this.#piece.slice(this.#from);
    this.#piece = '';
    this.#from = 0;
    this.#begun = [];
    this.#begunLength = 0;
    return text;
  }
}
