/** Keeps ports open between an agent and the next one of its container. */
import type { KeptSocket, PassedPort } from './kept-socket.ts';
import { PassedOn, type Taker } from './passed-on.ts';
import { PortKeeper } from './port-keeper.ts';

export class KeptPorts {
  readonly #keeper: PortKeeper;
  readonly #passedOn: PassedOn;

  /** @param directory of the record, shared by the agents of a container */
  constructor(directory: string) {
    this.#keeper = new PortKeeper(directory);
    this.#passedOn = new PassedOn(directory);
  }

  /** Whether a previous agent may have left open ports. */
  get isAfterAnother(): boolean {
    return this.#passedOn.isAfterAnother;
  }

  /** Receives queries and connections at the ports of a previous agent. Call only in the serving agent. */
  async listen(): Promise<void> {
    await this.#passedOn.listen();
  }

  /**
   * Keeps these sockets open after this agent exits.
   *
   * @param taker receives queries and connections at the ports of a previous agent
   */
  keep(port: PassedPort, sockets: readonly KeptSocket[], taker: Taker): void {
    this.#passedOn.take(port, taker);
    this.#keeper.keep(port, sockets);
  }

  forget(port: PassedPort): void {
    this.#passedOn.forget(port);
    this.#keeper.forget(port);
  }

  /** Leaves the ports open for the agent that has taken over. */
  handOver(): void {
    this.#passedOn.close();
    this.#keeper.handOver();
  }

  /** Closes the kept ports. */
  end(): void {
    this.#passedOn.close();
    this.#keeper.end();
  }
}
