/** An agent that only requests its certificate, over node:http2, so that thousands cost this process little. */
import { type ClientHttp2Session, connect as connectHttp2, constants } from 'node:http2';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';

export interface AgentPlan {
  readonly port: number;
  /** Loopback address. Each agent of a mesh has a different one. */
  readonly localAddress: string;
  /** PEM. */
  readonly roots: string;
  readonly serverName: string;
  readonly token: string;
  /** An encoded IstioCertificateRequest. */
  readonly request: Uint8Array;
}

export type CertificateResult =
  | { readonly is: 'signed'; readonly bytes: number }
  /** The queue was full. The client may retry after `afterMs`. */
  | { readonly is: 'deferred'; readonly afterMs: number }
  | { readonly is: 'failed'; readonly reason: string };

const path = '/istio.v1.auth.IstioCertificateService/CreateCertificate';
const resourceExhausted = '8';

export class FakeAgent {
  readonly #plan: AgentPlan;
  #session: ClientHttp2Session | undefined;

  constructor(plan: AgentPlan) {
    this.#plan = plan;
  }

  /** Sends one request over a reused connection. */
  requestCertificate(): Promise<CertificateResult> {
    const { token, request } = this.#plan;
    const { promise, resolve } = Promise.withResolvers<CertificateResult>();
    const session = this.#openSession();
    const stream = session.request({
      [constants.HTTP2_HEADER_METHOD]: 'POST',
      [constants.HTTP2_HEADER_PATH]: path,
      'content-type': 'application/grpc',
      te: 'trailers',
      authorization: `Bearer ${token}`,
    });
    let bytes = 0;
    const onHeaders = (headers: Record<string, unknown>): void => {
      const code = headers['grpc-status'];
      if (code === undefined) return;
      const afterMs = Number(headers['grpc-retry-pushback-ms']);
      if (code === '0') resolve({ is: 'signed', bytes });
      else if (code === resourceExhausted && afterMs > 0) resolve({ is: 'deferred', afterMs });
      else resolve({ is: 'failed', reason: `${code} ${headers['grpc-message']}` });
    };
    stream.on('response', onHeaders);
    stream.on('trailers', onHeaders);
    stream.on('data', (data: Buffer) => {
      bytes += data.length;
    });
    stream.on('error', (error) => resolve({ is: 'failed', reason: error.message }));
    stream.on('close', () => resolve({ is: 'failed', reason: 'the stream was closed' }));
    const head = Buffer.alloc(5);
    head.writeUInt32BE(request.length, 1);
    stream.end(Buffer.concat([head, request]));
    return promise;
  }

  close(): void {
    this.#session?.destroy();
    this.#session = undefined;
  }

  #openSession(): ClientHttp2Session {
    if (this.#session !== undefined && !this.#session.closed && !this.#session.destroyed) return this.#session;
    const { port, localAddress, roots: ca, serverName } = this.#plan;
    const tls = { host: '127.0.0.1', port, ca, servername: serverName, ALPNProtocols: ['h2'] };
    // Node passes `localAddress` to the socket, but its types lack it.
    const options: ConnectionOptions = Object.assign(tls, { localAddress });
    const session = connectHttp2(`https://${serverName}:${port}`, {
      createConnection: () => connectTls(options),
    });
    // Each stream reports the error, too.
    session.on('error', () => {});
    this.#session = session;
    return session;
  }
}
