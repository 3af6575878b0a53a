/** The control plane's address for agents, like a Service in a cluster: each connection goes to the first replica that accepts it. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export class ServiceAddress {
  readonly #server = createServer((clientSocket) => this.#join(clientSocket, 0));
  readonly #sockets = new Set<Socket>();
  readonly #ports: readonly number[];
  /** Number of connections that each replica has accepted. */
  readonly acceptedCounts: number[];

  private constructor(ports: readonly number[]) {
    this.#ports = ports;
    this.acceptedCounts = ports.map(() => 0);
  }

  /** @param ports of replicas on loopback */
  static async forPorts(...ports: number[]): Promise<ServiceAddress> {
    const address = new ServiceAddress(ports);
    address.#server.listen(0, '127.0.0.1');
    await once(address.#server, 'listening');
    return address;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #join(clientSocket: Socket, index: number): void {
    const port = this.#ports[index];
    if (port === undefined) {
      clientSocket.resetAndDestroy();
      return;
    }
    const targetSocket = connect(port, '127.0.0.1');
    const tryNext = (): void => this.#join(clientSocket, index + 1);
    targetSocket.once('error', tryNext);
    targetSocket.once('connect', () => {
      targetSocket.off('error', tryNext);
      this.acceptedCounts[index]!++;
      for (const [one, other] of [
        [clientSocket, targetSocket],
        [targetSocket, clientSocket],
      ] as const) {
        this.#sockets.add(one);
        one.on('error', () => {}).on('close', () => other.destroy());
        one.pipe(other);
      }
    });
  }
}
