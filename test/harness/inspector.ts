import { eventually } from './eventually.ts';

/** Controls a Node program that was started with `--inspect`, through the Chrome DevTools protocol. */
export class Inspector {
  readonly #socket: WebSocket;
  readonly #pending = new Map<number, (result: unknown) => void>();
  #calls = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener('message', ({ data }) => {
      const { id, result } = JSON.parse(String(data)) as { id?: number; result?: unknown };
      if (id !== undefined) this.#pending.get(id)?.(result);
    });
  }

  static async attach(port: number): Promise<Inspector> {
    const [target] = await eventually('the inspector answers', async () => {
      const response = await fetch(`http://127.0.0.1:${port}/json/list`);
      return (await response.json()) as { webSocketDebuggerUrl: string }[];
    });
    const socket = new WebSocket(target!.webSocketDebuggerUrl);
    await new Promise((resolve, reject) => {
      socket.addEventListener('open', resolve);
      socket.addEventListener('error', reject);
    });
    return new Inspector(socket);
  }

  call(method: string, params: object = {}): Promise<unknown> {
    const id = ++this.#calls;
    const { promise, resolve } = Promise.withResolvers<unknown>();
    this.#pending.set(id, resolve);
    this.#socket.send(JSON.stringify({ id, method, params }));
    return promise;
  }

  close(): void {
    this.#socket.close();
  }
}
