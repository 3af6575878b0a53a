import { type ConnectionEnds, ownerOfPeer } from '../../runtime/socket-owner.ts';

/** True if the peer belongs to another user of this host, or to no process that can be found. False if the kernel has no table of connections. */
export function isFromOtherUser(connectionEnds: ConnectionEnds, uid = process.geteuid?.()): boolean {
  if (connectionEnds.remoteAddress !== '127.0.0.1') return true;
  const owner = ownerOfPeer(connectionEnds);
  if (owner === 'no table') return false;
  return owner === 'no process' || owner.uid !== uid;
}
