import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

export interface OtlpReceiver {
  readonly address: string;
  /** Span names of each request, in the order of arrival. */
  readonly requests: string[][];
  close(): void;
}

/** Starts a collector with an OTLP/HTTP port. */
export async function startOtlpReceiver(
  respond: (response: ServerResponse) => void = (response) => response.end('{}'),
): Promise<OtlpReceiver> {
  const requests: string[][] = [];
  const server = createServer(async (request, response) => {
    const body = (await json(request)) as { resourceSpans: { scopeSpans: { spans: { name: string }[] }[] }[] };
    requests.push(
      body.resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans.map((s) => s.name))),
    );
    respond(response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
