import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';

const maxQueries = 4_096;
const maxLength = 4 * 1024 * 1024;

/** Beyond the limit, drops the oldest queries, because their clients time out first. */
export class BufferedQueries {
  /** Each line has the client address and the query in base64. */
  readonly lines: string[] = [];
  /** Includes dropped queries. */
  total = 0;
  #length = 0;

  add(query: Buffer, address: string, port: number): void {
    const line = `${address} ${port} ${query.toString('base64')}\n`;
    this.total++;
    this.#length += line.length;
    this.lines.push(line);
    while (this.lines.length > maxQueries || this.#length > maxLength) this.#length -= this.lines.shift()!.length;
  }

  /**
   * Call when the socket gets no further queries. A timer can fire before the sockets of its iteration are read, so each round ends after these
   * reads.
   */
  async waitUntilDrained(): Promise<void> {
    for (let previousTotal = -1; previousTotal < this.total; ) {
      previousTotal = this.total;
      await sleep(1);
      await nextTurn();
    }
  }
}
