/** The target of an Envoy while its control plane changes. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A TCP proxy to one control plane after another, like a load balancer. */
export class Balancer {
  readonly #server = createServer((client) => this.#join(client));
  readonly #sockets = new Set<Socket>();
  #target: number | undefined;

  static async to(target: number): Promise<Balancer> {
    const balancer = new Balancer();
    balancer.#target = target;
    balancer.#server.listen(0, '127.0.0.1');
    await once(balancer.#server, 'listening');
    return balancer;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Switches to this target, or to none, and closes existing connections. */
  switchTo(target: number | undefined): void {
    this.#target = target;
    for (const socket of this.#sockets) socket.destroy();
  }

  close(): void {
    this.switchTo(undefined);
    this.#server.close();
  }

  #join(client: Socket): void {
    if (this.#target === undefined) {
      client.destroy();
      return;
    }
    const server = connect(this.#target, '127.0.0.1');
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(one);
      one.on('error', () => {});
      one.on('close', () => {
        this.#sockets.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  }
}
