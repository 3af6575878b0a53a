/** A TCP proxy that delays each direction: simulates the network between two programs of one machine, whose kernel has no netem. */
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

export interface DelayingProxyOptions {
  /** Loopback port to which connections are forwarded. */
  readonly to: number;
  /** Total delay of a request and its response in milliseconds; half in each direction. */
  readonly roundTripMs: number;
}

/** Forwards bytes in the order of their arrival, each chunk after its direction's delay. */
export class DelayingProxy {
  readonly #options: DelayingProxyOptions;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(options: DelayingProxyOptions) {
    this.#options = options;
    this.#server = createServer({ noDelay: true, allowHalfOpen: true }, (client) => this.#forward(client));
  }

  static async start(options: DelayingProxyOptions): Promise<DelayingProxy> {
    const proxy = new DelayingProxy(options);
    await new Promise<void>((resolve, reject) => proxy.#server.once('error', reject).listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Closes the connections, as a lost network does; new ones are accepted. */
  disconnect(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  close(): void {
    this.disconnect();
    this.#server.close();
  }

  #forward(client: Socket): void {
    const server = connect({ host: '127.0.0.1', port: this.#options.to, noDelay: true, allowHalfOpen: true });
    const oneWayMs = this.#options.roundTripMs / 2;
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(from);
      const runLater = (action: () => void): void => void setTimeout(() => to.destroyed || action(), oneWayMs);
      from.on('data', (chunk: Buffer) => runLater(() => to.write(chunk)));
      from.on('end', () => runLater(() => to.end()));
      from.on('error', () => {});
      from.on('close', () => {
        this.#sockets.delete(from);
        runLater(() => to.destroy());
      });
    }
  }
}
