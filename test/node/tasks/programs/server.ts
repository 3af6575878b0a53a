/** Shared by the sample servers, which run in containers as Node programs without packages. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';

export interface Request {
  readonly method: string;
  readonly url: URL;
  readonly message: IncomingMessage;
  readonly body: string;
}

export interface Response {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON, unless it is a string. */
  readonly body?: unknown;
}

const maxBodyBytes = 1 << 20;

async function bodyOf(message: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of message) {
    size += (chunk as Buffer).length;
    if (size > maxBodyBytes) throw new Error('the body is too large');
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks).toString();
}

/** Handles requests and responses as plain data; an error causes status 500. */
export function httpHandler(respond: (request: Request) => Response | Promise<Response>) {
  return async (message: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { method = 'GET', url = '/' } = message;
    try {
      const request = { method, url: new URL(url, 'http://server'), message, body: await bodyOf(message) };
      const { status = 200, headers = {}, body = '' } = await respond(request);
      const isText = typeof body === 'string';
      const type = isText ? 'text/html; charset=utf-8' : 'application/json';
      response.writeHead(status, { 'content-type': type, ...headers }).end(isText ? body : JSON.stringify(body));
    } catch (error) {
      response.writeHead(500, { 'content-type': 'text/plain' }).end(String(error));
    }
  };
}

// Node closes idle connections after 5 s by default; a request that Envoy sends at that moment would fail.
export const serverOptions = { keepAliveTimeout: 0 };

/** Listens; on SIGTERM, stops after the requests in flight. */
export function serve(port: number, respond: (request: Request) => Response | Promise<Response>): void {
  const server = createServer(serverOptions, httpHandler(respond)).listen(port, () =>
    console.log(`listening at ${port}`),
  );
  process.on('SIGTERM', () => server.close(() => process.exit()));
}
