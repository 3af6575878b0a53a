/** Open sockets, as they are named between an agent, the shell that keeps them, and the next agent. */
import type { Socket as UdpSocket } from 'node:dgram';
import type { Server } from 'node:net';

/** What is asked for at a port. */
export type PassedPort = 'dns' | 'status';
export type Transport = 'udp' | 'tcp';

/** One socket of a port. */
export interface KeptSocket {
  readonly transport: Transport;
  /** What it is bound to. */
  readonly address: string;
  /** File descriptor in this process; undefined: the socket is closed, or Node does not tell. */
  readonly fd: () => number | undefined;
}

/** Version of the lines below. An agent of another one is passed over: the stand-in waits for one that understands it, then gives up. */
export const passingFormat = 1;

/** The path of the socket at which an agent hears what is passed on. */
export const passedOnIn = (directory: string): string => `${directory}/passed-on`;

/** The first line of a connection to it. */
export interface PassingHeader {
  readonly format: typeof passingFormat;
  readonly port: PassedPort;
  readonly transport: Transport;
  /** Address of the socket that questions or connections came to. */
  readonly address: string;
  /** Who has connected, whose bytes follow. Absent: questions follow (UDP), or nothing (TCP): is anybody there? */
  readonly peer?: { readonly address: string; readonly port: number };
}

/** The answer to the header, after which the rest may be sent. */
export const passingAnswer = 'ready\n';
/** Said when all questions have been read, and those of names of the table are answered. */
export const takenAnswer = 'taken\n';

interface Handle {
  readonly _handle?: { readonly fd?: number } | null;
}

/** File descriptor of a socket, for which Node has no public name. */
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

export function keptUdp(socket: UdpSocket): KeptSocket {
  return { transport: 'udp', address: socket.address().address, fd: () => fdOf(socket) };
}

export function keptTcp(server: Server): KeptSocket {
  const address = server.address();
  const name = typeof address === 'object' && address !== null ? address.address : '';
  return { transport: 'tcp', address: name, fd: () => fdOf(server) };
}
