import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { isSystemError } from '../../runtime/errors.ts';

/** Of a row in the kernel's table of connections (proc(5)): both ends, the state, and whose socket it is. */
const row = /^\s*\d+: [\dA-F]*0100007F:([\dA-F]{4}) [\dA-F]*0100007F:([\dA-F]{4}) 01 \S+ \S+ \S+ +(\d+) /gm;

/**
 * Whether the other end of a connection from 127.0.0.1 to 127.0.0.1 belongs to another user of this host, or to nobody who can
 * be found. Where the kernel has no such table, false.
 */
export function isOfAnotherUser({ remoteAddress, remotePort, localPort }: Socket, uid = process.geteuid?.()): boolean {
  if (remoteAddress !== '127.0.0.1') return true;
  const users = ['tcp', 'tcp6']
    .map(readTable)
    .flatMap((table) =>
      [...(table ?? '').matchAll(row)]
        .filter(([, own, other]) => portOf(own) === remotePort && portOf(other) === localPort)
        .map(([, , , user]) => Number(user)),
    );
  if (users.length === 0) return readTable('tcp') !== undefined;
  return users.some((user) => user !== uid);
}

function portOf(hexadecimal: string | undefined): number {
  return Number(`0x${hexadecimal}`);
}

function readTable(name: string): string | undefined {
  try {
    return readFileSync(`/proc/net/${name}`, 'utf8');
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return undefined;
    throw error;
  }
}
