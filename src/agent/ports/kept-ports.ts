/** Keeps ports open between an agent and the next one of its container. */
import type { KeptSocket, PassedPort } from './kept-socket.ts';
import { PassedOn, type Taker } from './passed-on.ts';
import { PortKeeper } from './port-keeper.ts';

export class KeptPorts {
  readonly #keeper: PortKeeper;
  readonly #passedOn: PassedOn;

  constructor(directory: string) {
    this.#keeper = new PortKeeper(directory);
    this.#passedOn = new PassedOn(directory);
  }

  /** Whether a previous agent may have left open ports. */
  get isAfterAnother(): boolean {
    return this.#passedOn.isAfterAnother;
  }

  /** Must be called only in the serving agent. */
  async listen(): Promise<void> {
    await this.#passedOn.listen();
  }

  /** @param taker receives queries and connections at the ports of a previous agent */
  keep(port: PassedPort, sockets: readonly KeptSocket[], taker: Taker): void {
    this.#passedOn.take(port, taker);
    this.#keeper.keep(port, sockets);
  }

  forget(port: PassedPort): void {
    this.#passedOn.forget(port);
    this.#keeper.forget(port);
  }

  handOver(): void {
    this.#passedOn.close();
    this.#keeper.handOver();
  }

  end(): void {
    this.#passedOn.close();
    this.#keeper.end();
  }
}
