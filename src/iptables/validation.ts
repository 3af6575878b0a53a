import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { ChartpilotError, messageOf } from '../runtime/errors.ts';
import type { InterceptionOrder } from './interception-settings.ts';

const retryIntervalMs = 1_000;
const addressesByFamily = {
  v4: { listen: '127.0.0.1', from: '127.0.0.1', to: '127.0.0.6' },
  v6: { listen: '::1', from: '::1', to: '::6' },
} as const;

/**
 * Connects to an unused address and port. If the connection is accepted, it was redirected; its original destination confirms this. On loopback only
 * connections of the proxy are captured, so root switches to the proxy's user.
 *
 * @throws ChartpilotError REDIRECTION_ABSENT after the timeout; PORT_IN_USE if a program listens on the proxy's ports
 */
export async function validateInterception({
  interception,
  probePort,
  probeTimeoutMs,
}: InterceptionOrder): Promise<void> {
  const { listen, from, to } = addressesByFamily[interception.ipv6 ? 'v6' : 'v4'];
  const deadline = performance.now() + probeTimeoutMs;
  const servers: Server[] = [];
  try {
    for (const port of new Set([interception.proxyPort, interception.inboundCapturePort])) {
      servers.push(await listening(listen, port));
    }
    await runAsProxy(interception.proxyUids[0]!, async () => {
      for (;;) {
        const problem = await attemptConnection({
          servers,
          from,
          to,
          port: probePort,
          limitMs: deadline - performance.now(),
        });
        if (problem === undefined) return;
        const remainingMs = deadline - performance.now();
        if (remainingMs <= retryIntervalMs)
          throw notRedirectedError(`${to}:${probePort}: ${problem} within ${probeTimeoutMs} ms`);
        await sleep(retryIntervalMs);
      }
    });
  } finally {
    for (const server of servers) server.close();
  }
}

function notRedirectedError(reason: string): ChartpilotError {
  return new ChartpilotError('REDIRECTION_ABSENT', reason, {
    hint:
      'Check that the CNI plugin or the init container that applies the rules ran in this pod. ' +
      'On a new node the pod may have started before the plugin: delete the pod, its controller creates a new one.',
  });
}

async function listening(host: string, port: number): Promise<Server> {
  const server = createServer();
  server.listen({ host, port });
  try {
    await once(server, 'listening');
  } catch (error) {
    throw new ChartpilotError('PORT_IN_USE', `${host}:${port}: ${messageOf(error)}`, {
      hint: 'The validation uses the ports of Envoy: run it before Envoy starts.',
      cause: error,
    });
  }
  return server;
}

interface ConnectionAttempt {
  readonly servers: readonly Server[];
  readonly from: string;
  readonly to: string;
  readonly port: number;
  readonly limitMs: number;
}

/** Returns `undefined` if the connection reached one of the servers. */
async function attemptConnection({ servers, from, to, port, limitMs }: ConnectionAttempt): Promise<string | undefined> {
  const stop = new AbortController();
  const limit = AbortSignal.any([stop.signal, AbortSignal.timeout(Math.max(1, Math.ceil(limitMs)))]);
  const client = connect({ host: to, port, localAddress: from });
  let isConnected = false;
  client.once('connect', () => {
    isConnected = true;
  });
  try {
    // The source port identifies the test connection, because other clients may connect to the proxy's ports.
    const firstArrival = Promise.any(
      servers.map(async (server) => {
        for (;;) {
          const [socket] = (await once(server, 'connection', { signal: limit })) as [Socket];
          socket.on('error', () => {});
          const { remotePort } = socket;
          socket.destroy();
          if (remotePort === (client.address() as AddressInfo).port) return;
        }
      }),
    );
    client.on('error', () => {});
    // `error` is emitted before `close`, and rejects the promise.
    await Promise.race([firstArrival, once(client, 'close', { signal: limit }).then(() => firstArrival)]);
    return undefined;
  } catch {
    return isConnected ? 'another server accepted the connection' : 'no connection arrived';
  } finally {
    stop.abort();
    client.destroy();
  }
}

/** Sockets belong to the user of the process at their creation. */
async function runAsProxy(uid: string, task: () => Promise<void>): Promise<void> {
  if (process.geteuid?.() !== 0 || uid === '0') return task();
  const user = /^\d+$/.test(uid) ? Number(uid) : uid;
  process.seteuid!(user);
  try {
    await task();
  } finally {
    process.seteuid!(0);
  }
}
