/** Questions (UDP) that wait for the next agent: as many as there is room for. */
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';

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

  /**
   * Waits until a turn of the event loop has read nothing more of a socket that receives no further questions. A timer may fire in a turn
   * before that turn reads sockets, so each round ends after the reads of its turn.
   */
  async haveAll(): Promise<void> {
    for (let before = -1; before < this.total; ) {
      before = this.total;
      await sleep(1);
      await nextTurn();
    }
  }
}
