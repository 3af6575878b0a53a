/** Each blocking query occupies a connection. Idle connections are reused. */

import { Agent as HttpAgent, request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { hostOfUrl } from '../../runtime/addresses/url-host.ts';
import { messageOf } from '../../runtime/errors.ts';
import type { TlsMaterial } from '../kubernetes/access/cluster-access.ts';
import { ConsulError } from './consul-error.ts';
import type { ReceivedBody } from './received-bodies.ts';

/** TCP keep-alive detects dead peers. Otherwise a partition could block a query for a quarter of an hour. */
const keepAliveMsecs = 15_000;

export interface Http1Request {
  readonly server: URL;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly body: ReceivedBody;
  readonly signal: AbortSignal;
}

export class Http1Connections {
  #agent: HttpAgent | undefined;

  /** @param tls called once until {@link close} */
  async send(request: Http1Request, tls: () => Promise<TlsMaterial>): Promise<IncomingHttpHeaders> {
    this.#agent ??= request.server.protocol === 'https:' ? await secureAgent(tls) : new HttpAgent(agentOptions);
    return exchange(this.#agent, request);
  }

  get usedConnections(): number {
    return Object.values(this.#agent?.sockets ?? {}).reduce((sum, sockets) => sum + (sockets?.length ?? 0), 0);
  }

  /** The next request opens a new connection. */
  close(): void {
    this.#agent?.destroy();
    this.#agent = undefined;
  }
}

const agentOptions = { keepAlive: true, keepAliveMsecs, scheduling: 'lifo' } as const;

async function secureAgent(tls: () => Promise<TlsMaterial>): Promise<HttpsAgent> {
  return new HttpsAgent({ ...agentOptions, ...(await tls()) });
}

function exchange(agent: HttpAgent, options: Http1Request): Promise<IncomingHttpHeaders> {
  const { server, path, headers, timeoutMs, body, signal } = options;
  return new Promise((resolve, reject) => {
    const fail = (reason: string, status = 0): void => {
      markSettled();
      request.destroy();
      reject(new ConsulError({ reason, status }));
    };
    const timer = setTimeout(() => fail(`no complete response in ${timeoutMs} ms`), timeoutMs);
    const onAbort = (): void => fail('cancelled');
    const markSettled = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
    };
    const send = server.protocol === 'https:' ? httpsRequest : httpRequest;
    const request = send({ agent, hostname: hostOfUrl(server), port: server.port || undefined, path, headers });
    request.on('error', (error) => fail(messageOf(error)));
    request.once('response', (response) => {
      response.on('error', (error) => fail(messageOf(error)));
      response.on('data', (chunk: Buffer) => {
        try {
          body.push(chunk);
        } catch (error) {
          fail(messageOf(error), response.statusCode);
        }
      });
      response.once('close', () => {
        if (!response.complete) fail('the connection closed before the end of the response');
      });
      response.once('end', () => {
        markSettled();
        const status = response.statusCode ?? 0;
        if (status === 200) return resolve(response.headers);
        reject(new ConsulError({ reason: `HTTP status ${status}: ${joinLines(body.text())}`, status }));
      });
    });
    signal.addEventListener('abort', onAbort);
    if (signal.aborted) return onAbort();
    request.end();
  });
}

const maxReasonCharacters = 200;

export function joinLines(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim().slice(0, maxReasonCharacters);
}
