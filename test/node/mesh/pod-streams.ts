/** `exec`, `logs` and `port-forward` of pods, requested like kubectl: WebSockets to the API server, which connects to the kubelet. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { connect } from 'node:tls';
import type { RunningNode } from '../start-node.ts';

const channel = { stdin: 0, stdout: 1, stderr: 2, status: 3 } as const;
/** Bytes of a port number, the first message on each channel of a forwarded port. */
const portBytes = 2;

export interface PodName {
  readonly namespace?: string;
  readonly name: string;
}

export interface CommandResult {
  readonly stdout: string;
  readonly stderr: string;
  /** `Success`, or the message of an error. */
  readonly status: string;
}

export class PodStreams {
  readonly #node: RunningNode;
  readonly #server: Server;

  private constructor(node: RunningNode, server: Server) {
    this.#node = node;
    this.#server = server;
  }

  /** Node's WebSocket has no setting for the server's authority, so a listener at loopback terminates TLS. */
  static async open(node: RunningNode): Promise<PodStreams> {
    const { url, ca } = node.cluster.address;
    const { hostname: host, port } = new URL(url);
    const server = createServer((client) => {
      const upstream = connect({ host, port: Number(port), ca });
      client.on('error', () => upstream.destroy());
      upstream.on('error', () => client.destroy());
      client.pipe(upstream).pipe(client);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new PodStreams(node, server);
  }

  close(): void {
    this.#server.close();
  }

  async exec(pod: PodName, container: string, command: readonly string[]): Promise<CommandResult> {
    const query = new URLSearchParams({ container, stdout: 'true', stderr: 'true' });
    for (const argument of command) query.append('command', argument);
    const socket = await this.#connect(pod, `exec?${query}`, 'v5.channel.k8s.io');
    const texts = ['', '', '', ''];
    socket.addEventListener('message', ({ data }) => {
      const [number = 0, ...bytes] = new Uint8Array(data as ArrayBuffer);
      texts[number] += Buffer.from(bytes).toString();
    });
    await once(socket, 'close');
    const { status, message } = JSON.parse(texts[channel.status] || '{}') as { status?: string; message?: string };
    return {
      stdout: texts[channel.stdout] ?? '',
      stderr: texts[channel.stderr] ?? '',
      status: status === 'Success' ? status : (message ?? 'no status'),
    };
  }

  async logs(pod: PodName, container: string): Promise<string> {
    const response = await fetch(`http://${this.#address}${this.#path(pod)}/log?container=${container}`, {
      headers: this.#headers,
    });
    if (!response.ok) throw new Error(`logs: ${response.status} ${await response.text()}`);
    return response.text();
  }

  /**
   * Sends a request through a forwarded port.
   * @returns the complete response
   */
  async portForward(pod: PodName, port: number, path: string): Promise<string> {
    const socket = await this.#connect(pod, `portforward?ports=${port}`, 'v4.channel.k8s.io');
    const receivedTexts = ['', ''];
    socket.addEventListener('message', ({ data }) => {
      const [number = 0, ...bytes] = new Uint8Array(data as ArrayBuffer);
      receivedTexts[number] += Buffer.from(bytes).toString('latin1');
    });
    const request = `GET ${path} HTTP/1.1\r\nHost: pod\r\nConnection: close\r\n\r\n`;
    socket.send(Buffer.concat([Buffer.from([channel.stdin]), Buffer.from(request)]));
    await once(socket, 'close');
    const [data = '', error = ''] = receivedTexts.map((text) => text.slice(portBytes));
    if (error !== '') throw new Error(`port-forward: ${error}`);
    return data;
  }

  get #address(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get #headers(): Record<string, string> {
    return { authorization: `Bearer ${this.#node.cluster.address.adminToken}` };
  }

  #path({ namespace = this.#node.cluster.namespace, name }: PodName): string {
    return `/api/v1/namespaces/${namespace}/pods/${name}`;
  }

  async #connect(pod: PodName, resource: string, protocol: string): Promise<WebSocket> {
    // The types are those of browsers, which have no headers.
    const options = { protocols: [protocol], headers: this.#headers } as unknown as string[];
    const socket = new WebSocket(`ws://${this.#address}${this.#path(pod)}/${resource}`, options);
    socket.binaryType = 'arraybuffer';
    await Promise.race([
      once(socket, 'open'),
      once(socket, 'error').then(([{ message }]) => Promise.reject(new Error(`${resource}: ${message}`))),
    ]);
    return socket;
  }
}
