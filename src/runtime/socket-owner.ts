/** Finds the owner of a connection: any user can listen on any unprivileged port, so an address is not an identity. */
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { isSystemError } from './errors.ts';

export type ConnectionEnds = Pick<Socket, 'localAddress' | 'localPort' | 'remoteAddress' | 'remotePort'>;

export type PeerOwner =
  | { readonly uid: number }
  /** The other end is not accepted yet, or closed. The kernel reports uid 0 for such a socket. */
  | 'no process'
  /** There is no table of connections (not Linux, or no /proc). */
  | 'no table';

/** A row of proc_pid_net(5): both ends as address:port in hexadecimal, the state, the uid and the inode of the socket. */
const row = /^\s*\d+: ([\dA-F]+):([\dA-F]{4}) ([\dA-F]+):([\dA-F]{4}) ([\dA-F]{2}) \S+ \S+ \S+ +(\d+) +\d+ (\d+) /gm;
const establishedState = '01';

/** Loopback addresses in the notation of the rows. The first two name the same connection in different socket families. */
const loopbackV4: readonly string[] = ['0100007F', '0000000000000000FFFF00000100007F'];
const loopbackV6: readonly string[] = ['00000000000000000000000001000000'];

/** Both addresses must be 127.0.0.1 or ::1; any other connection has `no process`. */
export function ownerOfPeer(addresses: ConnectionEnds): PeerOwner {
  const tables = ['tcp', 'tcp6'].map(readTable);
  if (tables.every((table) => table === undefined)) return 'no table';
  const peer = { addresses: rowAddresses(addresses.remoteAddress), port: addresses.remotePort };
  const localEnd = { addresses: rowAddresses(addresses.localAddress), port: addresses.localPort };
  for (const [, address, port, otherAddress, otherPort, state, uid, inode] of tables.flatMap((table) => [
    ...(table ?? '').matchAll(row),
  ])) {
    const isPeer =
      Number(`0x${port}`) === peer.port &&
      Number(`0x${otherPort}`) === localEnd.port &&
      peer.addresses.includes(address!) &&
      localEnd.addresses.includes(otherAddress!);
    if (isPeer && state === establishedState && inode !== '0') return { uid: Number(uid) };
  }
  return 'no process';
}

function rowAddresses(address: string | undefined): readonly string[] {
  if (address === '127.0.0.1' || address === '::ffff:127.0.0.1') return loopbackV4;
  return address === '::1' ? loopbackV6 : [];
}

function readTable(name: string): string | undefined {
  try {
    return readFileSync(`/proc/net/${name}`, 'utf8');
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return undefined;
    throw error;
  }
}
