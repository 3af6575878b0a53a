/** Opens a port with several listening sockets. libuv accepts one connection of each per iteration of the event loop. */
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { ListenAddress } from '../listen-address.ts';

/** Backlog of each socket, because all proxies of a mesh can connect to a new server together. */
const maxUnaccepted = 65_535;
/** On other systems, the kernel does not distribute connections between the sockets of a port. */
const socketsPerPort = process.platform === 'linux' ? 8 : 1;
const maxProbeMs = 1_000;

/**
 * Fails with EADDRINUSE if another process listens on the port.
 *
 * @param onConnection called with a paused socket
 * @returns at least one listener
 */
export async function openPort(
  { host, port }: ListenAddress,
  onConnection: (socket: Socket) => void,
): Promise<Server[]> {
  const reusePort = socketsPerPort > 1;
  // The system permits sockets of several processes if all have SO_REUSEPORT.
  if (reusePort && port !== 0 && (await isInUse(host, port))) {
    throw Object.assign(new Error('listen EADDRINUSE: address already in use'), { code: 'EADDRINUSE' });
  }
  const listeners: Server[] = [];
  try {
    while (listeners.length < socketsPerPort) {
      const listener = createServer({ noDelay: true, pauseOnConnect: true }, onConnection);
      const commonPort = listeners[0] === undefined ? port : portOf(listeners[0]);
      await new Promise<void>((resolve, reject) => {
        listener.once('error', reject);
        const options = { port: commonPort, reusePort, backlog: maxUnaccepted, ...(host !== '' && { host }) };
        listener.listen(options, resolve);
      });
      listeners.push(listener);
    }
  } catch (error) {
    for (const listener of listeners) listener.close();
    throw error;
  }
  return listeners;
}

export function portOf(listener: Server): number {
  return (listener.address() as AddressInfo).port;
}

async function isInUse(host: string, port: number): Promise<boolean> {
  const addresses = ['', '::', '0.0.0.0'].includes(host) ? interfaceAddresses(host === '0.0.0.0') : [host];
  return (await Promise.all(addresses.map((address) => isListening(address, port)))).includes(true);
}

function interfaceAddresses(isIpv4: boolean): string[] {
  const interfaces = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return interfaces.filter(({ family }) => !isIpv4 || family === 'IPv4').map(({ address }) => address);
}

function isListening(host: string, port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect({ host, port, timeout: maxProbeMs });
  // A socket that is its own peer has taken a free port.
  socket.once('connect', () => resolve(socket.localPort !== port));
  socket.once('error', () => resolve(false));
  // Its backlog is full.
  socket.once('timeout', () => resolve(true));
  return promise.finally(() => socket.destroy());
}
