/** Questions (UDP) that wait for the next agent: as many as there is room for. */

const most = 4_096;
const mostLength = 4 * 1024 * 1024;

/** Questions in the order in which they came. The newest stay where there is no room for all: whoever asked first has given up first. */
export class KeptQuestions {
  /** A line each: who asks, and the question in base64. */
  readonly lines: string[] = [];
  /** How many came in all, kept or not. */
  total = 0;
  #length = 0;

  add(question: Buffer, address: string, port: number): void {
    const line = `${address} ${port} ${question.toString('base64')}\n`;
    this.total++;
    this.#length += line.length;
    this.lines.push(line);
    while (this.lines.length > most || this.#length > mostLength) this.#length -= this.lines.shift()!.length;
  }
}
