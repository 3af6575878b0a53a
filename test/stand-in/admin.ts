/** The parts of Envoy's admin interface that the supervisor uses. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { hotRestartVersion, type StandInFlags } from './flags.ts';

export type ServerState = 'INITIALIZING' | 'LIVE' | 'DRAINING';

export class AdminInterface {
  state: ServerState = 'INITIALIZING';
  /** Bytes are the response to every request. */
  behaviour: 'holds' | 'fails' | 'answers' | Buffer = 'answers';
  requestsInFlight = 0;
  readonly #flags: StandInFlags;
  readonly #onOrder: (path: string) => void;
  #server: Server | undefined;

  /** @param onOrder called for every accepted POST before the response */
  constructor(flags: StandInFlags, onOrder: (path: string) => void) {
    this.#flags = flags;
    this.#onOrder = onOrder;
  }

  /** @throws Error EADDRINUSE of the system */
  open({ host, port }: { host: string; port: number }): Promise<void> {
    const server = createServer((request, response) => this.#serve(request, response));
    this.#server = server;
    return new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen({ host, port, exclusive: true }, resolve);
    });
  }

  /** Called when a child takes over the port. */
  async close(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined) return;
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeAllConnections();
    await closed;
  }

  #serve({ method, url = '/' }: IncomingMessage, response: ServerResponse): void {
    if (this.behaviour === 'holds') return;
    if (typeof this.behaviour !== 'string') {
      response.socket?.end(this.behaviour);
      return;
    }
    const { status, body } =
      this.behaviour === 'fails' ? { status: 500, body: 'told to fail' } : this.#respond(method, url);
    response.writeHead(status, { connection: 'close', 'content-type': 'text/plain' }).end(`${body}\n`);
  }

  #respond(method: string | undefined, path: string): { status: number; body: string } {
    if (method === 'POST') return this.#order(path);
    if (path === '/ready') return { status: this.state === 'LIVE' ? 200 : 503, body: this.state };
    if (path === '/server_info') return { status: 200, body: JSON.stringify(this.#serverInfo()) };
    if (path.startsWith('/stats'))
      return { status: 200, body: `http.ingress.downstream_rq_active: ${this.requestsInFlight}` };
    return { status: 404, body: 'invalid path' };
  }

  #order(path: string): { status: number; body: string } {
    const knownPaths = ['/healthcheck/fail', '/healthcheck/ok', '/drain_listeners', '/quitquitquit'];
    if (!knownPaths.includes(path.replace(/\?.*/, ''))) return { status: 404, body: 'invalid path' };
    if (path === '/healthcheck/fail') this.state = 'DRAINING';
    if (path === '/healthcheck/ok') this.state = 'LIVE';
    this.#onOrder(path);
    return { status: 200, body: 'OK' };
  }

  #serverInfo(): object {
    const { epoch, baseId, drainMs, parentShutdownMs } = this.#flags;
    return {
      version: 'stand-in',
      state: this.state,
      hot_restart_version: hotRestartVersion,
      hot_restart_initializing: this.state === 'INITIALIZING',
      command_line_options: {
        base_id: String(baseId),
        restart_epoch: epoch,
        drain_time: `${drainMs / 1_000}s`,
        parent_shutdown_time: `${parentShutdownMs / 1_000}s`,
      },
    };
  }
}
