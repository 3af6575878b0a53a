/** Ports that stay open between an agent and the next one of its container. */
import type { KeptSocket, PassedPort } from './kept-socket.ts';
import { PassedOn, type Taker } from './passed-on.ts';
import { PortKeeper } from './port-keeper.ts';

export class KeptPorts {
  readonly #keeper: PortKeeper;
  readonly #passedOn: PassedOn;

  /** @param directory shared by the agents of a container */
  constructor(directory: string) {
    this.#keeper = new PortKeeper(directory);
    this.#passedOn = new PassedOn(directory);
  }

  /** A previous agent may have left open ports. */
  get isAfterAnother(): boolean {
    return this.#passedOn.isAfterAnother;
  }

  /** Receives what arrived at the ports of a previous agent. Only for the serving agent. */
  async listen(): Promise<void> {
    await this.#passedOn.listen();
  }

  /**
   * Keeps these sockets open after this agent ends. @param taker receives what arrived at the ports of a previous agent
   */
  keep(port: PassedPort, sockets: readonly KeptSocket[], taker: Taker): void {
    this.#passedOn.take(port, taker);
    this.#keeper.keep(port, sockets);
  }

  forget(port: PassedPort): void {
    this.#passedOn.forget(port);
    this.#keeper.forget(port);
  }

  /** Another agent has taken over; this one ends and leaves its ports open. */
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
