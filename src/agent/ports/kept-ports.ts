/** Keeps ports open between an agent and the next one of its container. */
import type { KeptSocket, PassedPort } from './kept-socket.ts';
import { PassedTraffic, type PassedTrafficReceiver } from './passed-on.ts';
import { PortKeeper } from './port-keeper.ts';

export class KeptPorts {
  readonly #portKeeper: PortKeeper;
  readonly #passedTraffic: PassedTraffic;

  constructor(directory: string) {
    this.#portKeeper = new PortKeeper(directory);
    this.#passedTraffic = new PassedTraffic(directory);
  }

  get isAfterAnother(): boolean {
    return this.#passedTraffic.isAfterAnother;
  }

  /** Must be called only in the serving agent. */
  async listen(): Promise<void> {
    await this.#passedTraffic.listen();
  }

  /** @param receiver receives queries and connections at the ports of a previous agent */
  keep(port: PassedPort, sockets: readonly KeptSocket[], receiver: PassedTrafficReceiver): void {
    this.#passedTraffic.addReceiver(port, receiver);
    this.#portKeeper.keep(port, sockets);
  }

  release(port: PassedPort): void {
    this.#passedTraffic.removeReceiver(port);
    this.#portKeeper.release(port);
  }

  handOver(): void {
    this.#passedTraffic.close();
    this.#portKeeper.handOver();
  }

  close(): void {
    this.#passedTraffic.close();
    this.#portKeeper.close();
  }
}
