/** Readers of a live program's trace in tests: a debugger, or a misbehaving client. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { readDebuggerToken } from '../../src/runtime/trace/debugger-token.ts';
import type { TraceLine } from '../../src/runtime/trace/trace.ts';

/** A debugger without a user interface: records what it receives. */
export class Viewer {
  text = '';
  /** Whether the response ended properly; `undefined` while it continues. */
  isWhole: boolean | undefined;

  /** @param port port of the program, which has written its token */
  static async attach(port: number): Promise<Viewer> {
    const viewer = new Viewer();
    const response = await requestStream(port, { authorization: `Bearer ${readDebuggerToken(port)}` });
    if (response.statusCode !== 200) throw new Error(`the stream is refused with ${response.statusCode}`);
    response.setEncoding('utf8').on('data', (chunk: string) => (viewer.text += chunk));
    response.on('end', () => (viewer.isWhole ??= true));
    response.on('error', () => (viewer.isWhole ??= false));
    return viewer;
  }

  get lines(): TraceLine[] {
    return linesOf(this.text);
  }
}

/** Sends a request unchanged on a separate connection, with any `Host`. */
export async function requestStream(
  port: number,
  headers: Record<string, string> = {},
  { path = '/debug/trace', host = '127.0.0.1' } = {},
): Promise<IncomingMessage> {
  const sentRequest = request({ host, port, path, headers, agent: false });
  sentRequest.on('error', () => {});
  sentRequest.end();
  const [response] = (await once(sentRequest, 'response')) as [IncomingMessage];
  return response;
}

export async function responseTo(
  ...args: Parameters<typeof requestStream>
): Promise<[status: number | undefined, text: string]> {
  const response = await requestStream(...args);
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) text += chunk as string;
  return [response.statusCode, text];
}

/** Complete lines of a trace. */
export function linesOf(text: string): TraceLine[] {
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as TraceLine);
}

/**
 * A client that requests the stream and never reads. For a connection of Node, the kernel buffers megabytes, tens of thousands of records; Python can
 * request a smaller buffer.
 */
export async function stuckViewer(port: number, authorization: string): Promise<{ destroy(): void }> {
  const script = [
    'import socket, sys',
    's = socket.socket()',
    's.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)',
    's.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)',
    "s.connect(('127.0.0.1', int(sys.argv[1])))",
    "s.sendall(('GET /debug/trace HTTP/1.1\\r\\nHost: localhost\\r\\nAuthorization: ' + sys.stdin.readline().strip() + '\\r\\n\\r\\n').encode())",
    "print('asked', flush=True)",
    'sys.stdin.read()',
  ];
  const child = spawn('python3', ['-c', script.join('\n'), String(port)], { stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.on('error', () => {});
  child.stdin.write(`${authorization}\n`);
  await once(child.stdout, 'data');
  await sleep(100);
  return { destroy: () => child.kill('SIGKILL') };
}
