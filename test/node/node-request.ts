/** HTTP requests to addresses in a node's network namespace. */
import { type IncomingHttpHeaders, request } from 'node:http';
import { text } from 'node:stream/consumers';
import type { RunningNode } from './start-node.ts';

export interface NodeResponse {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** @param url URL with the address of a pod or a Service */
export function get({ dialer }: RunningNode, url: string): Promise<NodeResponse> {
  const { hostname, port, pathname, search } = new URL(url);
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  return new Promise((resolve, reject) => {
    // No `http.Agent`: it would ignore `createConnection` and connect from the network of this process.
    const createConnection = () => dialer.connect(host, Number(port) || 80);
    const clientRequest = request({ host, path: `${pathname}${search}`, createConnection }, (response) => {
      const { statusCode: status, headers } = response;
      text(response).then((body) => resolve({ status, headers, body }), reject);
    });
    clientRequest.on('error', reject);
    clientRequest.end();
  });
}
