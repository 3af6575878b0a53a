/** The ports of an agent that another one may follow: none is closed in between. */
import type { KeptSocket, PassedPort } from './kept-socket.ts';
import { PassedOn, type Taker } from './passed-on.ts';
import { PortKeeper } from './port-keeper.ts';

export class KeptPorts {
  readonly #keeper: PortKeeper;
  readonly #passedOn: PassedOn;

  /** @param directory where agents of this container meet */
  constructor(directory: string) {
    this.#keeper = new PortKeeper(directory);
    this.#passedOn = new PassedOn(directory);
  }

  /** Ports may be open that no agent has: of one that was here before. */
  get isAfterAnother(): boolean {
    return this.#passedOn.isAfterAnother;
  }

  /** Hears what came to the ports of an agent before this one: for the one that has the right to decide. */
  async listen(): Promise<void> {
    await this.#passedOn.listen();
  }

  /** These sockets stay open when this agent ends. @param taker of what came to an agent's before this one */
  keep(port: PassedPort, sockets: readonly KeptSocket[], taker: Taker): void {
    this.#passedOn.take(port, taker);
    this.#keeper.keep(port, sockets);
  }

  forget(port: PassedPort): void {
    this.#passedOn.forget(port);
    this.#keeper.forget(port);
  }

  /** Another agent has taken over, and this one ends. */
  letGo(): void {
    this.#passedOn.close();
    this.#keeper.letGo();
  }

  /** All ends. */
  end(): void {
    this.#passedOn.close();
    this.#keeper.end();
  }
}
