/** Questions (UDP) that wait for the next agent: as many as there is room for. */

const most = 4_096;
const mostLength = 4 * 1024 * 1024;

/** In the order in which they came. Of more than there is room for the newest stay: whoever asked first is the first to have given up. */
export class KeptQuestions {
  /** A line each: who asks, and the question in base64. */
  readonly lines: string[] = [];
  /** Of all that came. */
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
