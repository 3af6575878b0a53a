import { request } from 'node:http';
import { messageOf } from '../../runtime/errors.ts';
import { rejectUpgrade } from '../../runtime/fences/other-protocol.ts';

export interface AdminResponse {
  readonly status: number;
  readonly body: string;
}

/** Envoy serves only in state `LIVE`. */
export interface AdminState {
  readonly live: boolean;
  /** `LIVE`, `INITIALIZING`, …, or why there was no response. */
  readonly detail: string;
  readonly responded: boolean;
  /** Set if the process did not respond within the limit, although it accepted the connection or was busy. */
  readonly timedOut?: true;
}

export interface ServerInfo {
  readonly epoch: number;
  readonly state: string;
}

export interface AdminClient {
  readonly address: string;
  readonly port: number;
  /** Rejects only if there is no response; {@link post} also rejects if the status is not 200, because then the command was not executed. */
  get(path: string, limitMs?: number): Promise<AdminResponse>;
  post(path: string): Promise<void>;
  /** Never rejects. */
  state(limitMs?: number): Promise<AdminState>;
  /** Whether the connection is refused because no process listens. Never rejects. */
  isClosed(limitMs: number): Promise<boolean>;
  /** Rejects without a valid response. */
  serverInfo(): Promise<ServerInfo>;
}

export class AdminTimeoutError extends Error {
  override readonly name = 'AdminTimeoutError';
}

const defaultLimitMs = 5_000;
/** Exceeds the statistics of a mesh with 100,000 clusters. Another program at this port may send an endless response. */
const maxResponseBytes = 64 * 1024 * 1024;

export type AdminConnector = (port: number) => AdminClient;

export const adminsAt =
  (host: string): AdminConnector =>
  (port) =>
    createAdminClient(host, port);

/** Each request has its own connection, because a hot restart moves the port to another process. */
export function createAdminClient(host: string, port: number): AdminClient {
  const address = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;

  const call = (method: 'GET' | 'POST', path: string, limitMs: number): Promise<AdminResponse> =>
    new Promise((resolve, reject) => {
      const signal = AbortSignal.timeout(limitMs);
      const failure = (cause: Error): Error => {
        const request = `Envoy admin ${method} http://${address}${path}`;
        return signal.aborted
          ? new AdminTimeoutError(`${request}: no response within ${limitMs} ms`, { cause })
          : new Error(`${request}: ${connectionProblem(cause)}`, { cause });
      };
      const outgoing = request({ host, port, method, path, agent: false, signal }, (response) => {
        const chunks: Buffer[] = [];
        let bytes = 0;
        response.on('data', (chunk: Buffer) => {
          bytes += chunk.length;
          if (bytes > maxResponseBytes) response.destroy(new Error(`response exceeds ${maxResponseBytes} bytes`));
          else chunks.push(chunk);
        });
        response.on('error', (error) => reject(failure(error)));
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString('utf8') }),
        );
      });
      rejectUpgrade(outgoing, (error) => reject(failure(error)));
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
        return { live: status === 200, detail: body.trim() || String(status), responded: true };
      } catch (error) {
        const timedOut = error instanceof AdminTimeoutError && { timedOut: true as const };
        return { live: false, detail: messageOf(error), responded: false, ...timedOut };
      }
    },
    async isClosed(limitMs) {
      try {
        await call('GET', '/ready', limitMs);
        return false;
      } catch (error) {
        return error instanceof Error && connectionProblem(error.cause) === refusedMessage;
      }
    },
    async serverInfo() {
      const { status, body } = await call('GET', '/server_info', defaultLimitMs);
      if (status !== 200) throw new Error(`Envoy admin GET http://${address}/server_info: status ${status}`);
      const info = JSON.parse(body) as { state?: string; command_line_options?: { restart_epoch?: number } };
      // Proto JSON omits zero, which is LIVE.
      return { epoch: info.command_line_options?.restart_epoch ?? 0, state: info.state ?? 'LIVE' };
    },
  };
}

const refusedMessage = 'connection refused';

export function connectionProblem(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'ECONNREFUSED') return refusedMessage;
  if (code === 'ECONNRESET') return 'connection reset';
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'host name not resolved';
  if (code === 'ETIMEDOUT' || code === 'EHOSTUNREACH') return 'host unreachable';
  return messageOf(error);
}
