/** Envoy's admin interface, as far as the agent needs it (spec/agent.md §4.4). */
import { request } from 'node:http';
import { messageOf } from '../../runtime/errors.ts';
import { refuseOtherProtocol } from '../../runtime/fences/other-protocol.ts';

export interface AdminAnswer {
  readonly status: number;
  readonly body: string;
}

/** What `/ready` says. `LIVE` is the only state in which Envoy serves. */
export interface AdminState {
  readonly live: boolean;
  /** `LIVE`, `INITIALIZING`, …, or why nobody answered. */
  readonly detail: string;
  /** Whether anybody answered at all. */
  readonly answered: boolean;
}

export interface ServerInfo {
  readonly epoch: number;
  /** As {@link AdminState.detail} of one that answers: `LIVE`, `INITIALIZING`, … */
  readonly state: string;
}

export interface AdminClient {
  /** `127.0.0.1:15000`. */
  readonly address: string;
  readonly port: number;
  /** Rejects only when there is no answer. */
  get(path: string, limitMs?: number): Promise<AdminAnswer>;
  /** Rejects also when the answer is not 200: an order that was not taken. */
  post(path: string): Promise<void>;
  /** Never rejects. */
  state(limitMs?: number): Promise<AdminState>;
  /** Whether the operating system refuses connections there: nobody listens. Never rejects. */
  isClosed(limitMs: number): Promise<boolean>;
  /** What the process that answers says of itself, in one answer. Rejects when there is none that makes sense. */
  serverInfo(): Promise<ServerInfo>;
}

/** The admin interface did not respond within the limit. Its process may be blocked. */
export class AdminTimeoutError extends Error {
  override readonly name = 'AdminTimeoutError';
}

const defaultLimitMs = 5_000;
/** The statistics of a mesh of 100,000 clusters are smaller; a stranger at this port may never end. */
const maxAnswerBytes = 64 * 1024 * 1024;

/** Whose admin interface it is follows from its port, which comes with the order to ask it. */
export type AdminConnector = (port: number) => AdminClient;

/** Admin interfaces of this host's Envoys, each by its port. */
export const adminsAt =
  (host: string): AdminConnector =>
  (port) =>
    createAdminClient(host, port);

/** A connection is used once: a hot restart moves the port to another process. */
export function createAdminClient(host: string, port: number): AdminClient {
  const address = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;

  const call = (method: 'GET' | 'POST', path: string, limitMs: number): Promise<AdminAnswer> =>
    new Promise((resolve, reject) => {
      const signal = AbortSignal.timeout(limitMs);
      const failure = (cause: Error): Error => {
        const place = `Envoy admin ${method} http://${address}${path}`;
        return signal.aborted
          ? new AdminTimeoutError(`${place}: no response within ${limitMs} ms`, { cause })
          : new Error(`${place}: ${connectionProblem(cause)}`, { cause });
      };
      const outgoing = request({ host, port, method, path, agent: false, signal }, (response) => {
        const chunks: Buffer[] = [];
        let bytes = 0;
        response.on('data', (chunk: Buffer) => {
          bytes += chunk.length;
          if (bytes > maxAnswerBytes) response.destroy(new Error(`response exceeds ${maxAnswerBytes} bytes`));
          else chunks.push(chunk);
        });
        response.on('error', (error) => reject(failure(error)));
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString('utf8') }),
        );
      });
      refuseOtherProtocol(outgoing, (error) => reject(failure(error)));
      outgoing.on('error', (error) => reject(failure(error)));
      outgoing.end();
    });

  return {
    address,
    port,
    get: (path, limitMs = defaultLimitMs) => call('GET', path, limitMs),
    async post(path) {
      const { status, body } = await call('POST', path, defaultLimitMs);
      if (status !== 200)
        throw new Error(`Envoy admin POST http://${address}${path}: status ${status} ${body.trim()}`.trim());
    },
    async state(limitMs = defaultLimitMs) {
      try {
        const { status, body } = await call('GET', '/ready', limitMs);
        return { live: status === 200, detail: body.trim() || String(status), answered: true };
      } catch (error) {
        return { live: false, detail: messageOf(error), answered: false };
      }
    },
    async isClosed(limitMs) {
      try {
        await call('GET', '/ready', limitMs);
        return false;
      } catch (error) {
        return error instanceof Error && connectionProblem(error.cause) === refused;
      }
    },
    async serverInfo() {
      const { status, body } = await call('GET', '/server_info', defaultLimitMs);
      if (status !== 200) throw new Error(`Envoy admin GET http://${address}/server_info: status ${status}`);
      const info = JSON.parse(body) as { state?: string; command_line_options?: { restart_epoch?: number } };
      // Proto JSON may leave out a zero, which is what LIVE is.
      return { epoch: info.command_line_options?.restart_epoch ?? 0, state: info.state ?? 'LIVE' };
    },
  };
}

const refused = 'connection refused';

/** Why a connection failed, in a few words. */
export function connectionProblem(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'ECONNREFUSED') return refused;
  if (code === 'ECONNRESET') return 'connection reset';
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'host name not resolved';
  if (code === 'ETIMEDOUT' || code === 'EHOSTUNREACH') return 'host unreachable';
  return messageOf(error);
}
