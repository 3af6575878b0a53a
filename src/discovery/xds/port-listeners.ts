/**
 * Opens a port with several listening sockets. In each iteration of the event loop, libuv accepts one connection per socket. When thousands of
 * proxies reconnect, an iteration takes 10 ms, so with one socket most of them would time out in its backlog.
 */
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import type { ListenAddress } from '../listen-address.ts';

/** Backlog of each socket, because all proxies of a mesh can connect to a new server together. */
const maxUnacceptedConnections = 65_535;
/** On other systems, the kernel does not distribute connections between the sockets of a port. */
const socketsPerPort = process.platform === 'linux' ? 8 : 1;

/**
 * Fails with EADDRINUSE if another process listens on the port.
 *
 * @param onConnection called with a paused socket
 */
export async function openPort(
  { host, port }: ListenAddress,
  onConnection: (socket: Socket) => void,
): Promise<Server[]> {
  const listen = async (commonPort: number, reusePort: boolean): Promise<Server> => {
    const listener = createServer({ noDelay: true, pauseOnConnect: true }, onConnection);
    await new Promise<void>((resolve, reject) => {
      listener.once('error', reject);
      const options = { port: commonPort, reusePort, backlog: maxUnacceptedConnections, ...(host !== '' && { host }) };
      listener.listen(options, resolve);
    });
    return listener;
  };
  if (socketsPerPort === 1) return [await listen(port, false)];
  // Fails if another process has the port. Sockets with SO_REUSEPORT could share it.
  if (port !== 0) (await listen(port, false)).close();
  const listeners = [await listen(port, true)];
  try {
    while (listeners.length < socketsPerPort) listeners.push(await listen(portOf(listeners[0]!), true));
  } catch (error) {
    for (const listener of listeners) listener.close();
    throw error;
  }
  return listeners;
}

export function portOf(listener: Server): number {
  return (listener.address() as AddressInfo).port;
}
