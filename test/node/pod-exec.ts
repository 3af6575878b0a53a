/** Commands in containers and logs of pods, through the API server as `kubectl exec` and `kubectl logs` send their requests. */
import { randomBytes } from 'node:crypto';
import { request } from 'node:https';
import type { Duplex } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { RunningNode } from './start-node.ts';

export interface Container {
  readonly namespace: string;
  readonly pod: string;
  /** By default the pod's default container: its annotation names it, otherwise the first. */
  readonly container?: string;
}

export interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function requestTo(
  { cluster }: RunningNode,
  { namespace, pod }: Container,
  action: string,
  query: URLSearchParams,
  headers = {},
) {
  const { url, ca, adminToken } = cluster.address;
  const target = new URL(`/api/v1/namespaces/${namespace}/pods/${pod}/${action}?${query}`, url);
  return request(target, { ca, agent: false, headers: { authorization: `Bearer ${adminToken}`, ...headers } });
}

/** All lines that the container has written. @throws Error with the message of the API server */
export async function podLogs(node: RunningNode, container: Container): Promise<string> {
  const query = new URLSearchParams(container.container && { container: container.container });
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const sent = requestTo(node, container, 'log', query);
  sent.on('error', reject).on('response', (response) => {
    const body = text(response);
    if (response.statusCode === 200) body.then(resolve, reject);
    else body.then((message) => reject(new Error(`logs of ${container.pod}: ${message}`)), reject);
  });
  sent.end();
  return promise;
}

/** Runs a command without standard input. @throws Error if it cannot be started; its own exit code is a result */
export async function execInPod(
  node: RunningNode,
  container: Container,
  command: readonly string[],
): Promise<CommandResult> {
  const query = new URLSearchParams(command.map((word): [string, string] => ['command', word]));
  query.append('stdout', 'true');
  query.append('stderr', 'true');
  if (container.container !== undefined) query.append('container', container.container);
  const { promise, resolve, reject } = Promise.withResolvers<CommandResult>();
  const sent = requestTo(node, container, 'exec', query, {
    ...{ connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' },
    ...{ 'sec-websocket-key': randomBytes(16).toString('base64'), 'sec-websocket-protocol': 'v5.channel.k8s.io' },
  });
  sent.on('error', reject);
  sent.on('response', (response) => {
    text(response).then((message) => reject(new Error(`exec in ${container.pod}: ${message}`)), reject);
  });
  sent.on('upgrade', (_response, socket, head) => {
    readChannels(socket, head).then(({ stdout, stderr, status }) => {
      const code = exitCodeOf(status);
      if (code === undefined) reject(new Error(`exec in ${container.pod}: ${status || 'the connection ended'}`));
      else resolve({ code, stdout, stderr });
    }, reject);
  });
  sent.end();
  return promise;
}

/** @param status JSON, as `meta/v1` Status */
function exitCodeOf(status: string): number | undefined {
  if (status === '') return undefined;
  const parsed = JSON.parse(status) as {
    readonly status: string;
    readonly details?: { readonly causes?: readonly { readonly reason: string; readonly message: string }[] };
  };
  if (parsed.status === 'Success') return 0;
  const cause = parsed.details?.causes?.find(({ reason }) => reason === 'ExitCode');
  return cause && Number(cause.message);
}

const opcodes = { close: 8, ping: 9 } as const;
const channels = { stdout: 1, stderr: 2, status: 3 } as const;

/** Reads the messages of a WebSocket (RFC 6455) until the server closes it. The first byte of each is its channel. */
async function readChannels(socket: Duplex, head: Buffer): Promise<Record<keyof typeof channels, string>> {
  const received = new Map<number, Buffer[]>();
  let pending = head;
  // Continuation frames belong to the channel of the first one.
  let channel = 0;
  const accept = (frame: Frame): boolean => {
    if (frame.opcode === opcodes.close) return true;
    if (frame.opcode === opcodes.ping) socket.write(Buffer.of(0x8a, 0x80, 0, 0, 0, 0));
    if (frame.opcode > 2 || frame.payload.length === 0) return false;
    const isFirst = frame.opcode !== 0;
    if (isFirst) channel = frame.payload[0]!;
    const data = isFirst ? frame.payload.subarray(1) : frame.payload;
    received.set(channel, [...(received.get(channel) ?? []), data]);
    return false;
  };
  const drain = (): boolean => {
    for (let frame = firstFrame(pending); frame !== undefined; frame = firstFrame(pending)) {
      pending = pending.subarray(frame.bytes);
      if (accept(frame)) return true;
    }
    return false;
  };
  if (!drain()) {
    for await (const data of socket) {
      pending = Buffer.concat([pending, data as Buffer]);
      if (drain()) break;
    }
  }
  socket.destroy();
  const textOf = (of: number): string => Buffer.concat(received.get(of) ?? []).toString();
  return { stdout: textOf(channels.stdout), stderr: textOf(channels.stderr), status: textOf(channels.status) };
}

interface Frame {
  readonly opcode: number;
  readonly payload: Buffer;
  /** Of the frame with its header. */
  readonly bytes: number;
}

/** `undefined` until all of it was received. A server does not mask. */
function firstFrame(data: Buffer): Frame | undefined {
  if (data.length < 2) return undefined;
  const short = data[1]! & 0x7f;
  const header = short === 127 ? 10 : short === 126 ? 4 : 2;
  if (data.length < header) return undefined;
  const length = short === 127 ? Number(data.readBigUInt64BE(2)) : short === 126 ? data.readUInt16BE(2) : short;
  const bytes = header + length;
  if (data.length < bytes) return undefined;
  return { opcode: data[0]! & 0x0f, payload: data.subarray(header, bytes), bytes };
}
