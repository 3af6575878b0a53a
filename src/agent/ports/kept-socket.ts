import type { Socket as UdpSocket } from 'node:dgram';
import type { Server } from 'node:net';

export type PassedPort = 'dns' | 'status';
export type PassedTransport = 'udp' | 'tcp';

export interface KeptSocket {
  readonly transport: PassedTransport;
  readonly address: string;
  /** `undefined` if the socket is closed or the descriptor is unknown. */
  readonly fd: () => number | undefined;
}

/** The stand-in skips agents of other versions, and waits for a matching one until its timeout. */
export const passingFormat = 1;

/** At this socket, an agent receives queries and connections of its predecessor. */
export const passedTrafficPathOf = (directory: string): string => `${directory}/passed-on`;

export interface PassingHeader {
  readonly format: typeof passingFormat;
  readonly port: PassedPort;
  readonly transport: PassedTransport;
  /** Local address at which queries or connections arrived. */
  readonly address: string;
  /** Client of a connection, whose bytes follow. Absent for UDP, where queries follow, and for a TCP test connection, where nothing follows. */
  readonly peer?: { readonly address: string; readonly port: number };
}

export const readyResponse = 'ready\n';
/** Sent when all queries were read, and queries for names of the name table have a response. */
export const acknowledgedResponse = 'taken\n';

interface Handle {
  readonly _handle?: { readonly fd?: number } | null;
}

/** Node has no public API for the file descriptor of a socket. */
function fdOf(socket: unknown): number | undefined {
  const { noDeprecation } = process;
  process.noDeprecation = true;
  try {
    const fd = (socket as Handle)._handle?.fd;
    return fd === undefined || fd < 0 ? undefined : fd;
  } finally {
    if (noDeprecation === undefined) delete process.noDeprecation;
    else process.noDeprecation = noDeprecation;
  }
}

export function keepUdpSocket(socket: UdpSocket): KeptSocket {
  return { transport: 'udp', address: socket.address().address, fd: () => fdOf(socket) };
}

export function keepTcpServer(server: Server): KeptSocket {
  const address = server.address();
  const name = typeof address === 'object' && address !== null ? address.address : '';
  return { transport: 'tcp', address: name, fd: () => fdOf(server) };
}
