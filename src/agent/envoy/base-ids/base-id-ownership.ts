/**
 * Ownership of a base ID: an abstract socket, which the kernel closes when its owner exits. If an unrelated process has taken it, the agents of one
 * container settle the ownership by sockets with unpredictable names.
 */
import { randomBytes } from 'node:crypto';
import { createServer, type Server } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { isSystemError } from '../../../runtime/errors.ts';
import { areHeldBySibling, containerNamesOf, isRequestedBySibling, socketNameOf } from './base-id-owners.ts';

export type OwnedSocket = Pick<Server, 'close'>;

const pollMs = 25;
/** Maximum wait for a name without a known owner: the kernel may keep the name of a killed agent for a moment. */
const foreignNameWaitMs = 100;

/** Claims the base ID until the socket is closed or the process exits; `undefined` if another process owns it. */
export const claimName = (baseId: number): Promise<Server | undefined> => listenOn(socketNameOf(baseId));

/** Claims a base ID under which Envoys of this container run; only agents of this container can adopt them. */
export async function claimForContainer(
  baseId: number,
  { isOver: isDeadlinePassed, onForeignName }: { isOver: () => boolean; onForeignName: (baseId: number) => void },
): Promise<OwnedSocket | undefined> {
  const foreignDeadline = performance.now() + foreignNameWaitMs;
  for (;;) {
    const nameClaim = await claimName(baseId);
    // Another agent may own the ID without the name. Checked in the same order as in `claimInContainer`.
    if (nameClaim !== undefined && !isRequestedBySibling(baseId)) return nameClaim;
    nameClaim?.close();
    if (nameClaim === undefined && performance.now() > foreignDeadline) {
      const containerClaim = await claimInContainer(baseId);
      if (containerClaim !== undefined) {
        onForeignName(baseId);
        return containerClaim;
      }
    }
    if (isDeadlinePassed()) return undefined;
    // Random, so that two agents that give up because of each other do not collide again.
    await sleep(pollMs * (0.5 + Math.random()));
  }
}

/** Takes its own name before it checks those of others: of two agents, at least one detects the other. */
async function claimInContainer(baseId: number): Promise<OwnedSocket | undefined> {
  const names = containerNamesOf(baseId, randomBytes(8).toString('hex'));
  const request = await listenOn(names.request);
  const isInUse = request === undefined || areHeldBySibling([baseId]) || isRequestedBySibling(baseId);
  const heldSocket = isInUse ? undefined : await listenOn(names.held);
  if (heldSocket === undefined) {
    request?.close();
    return undefined;
  }
  return {
    close() {
      heldSocket.close();
      request?.close();
      return heldSocket;
    },
  };
}

function listenOn(name: string): Promise<Server | undefined> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', (error) => (isSystemError(error, 'EADDRINUSE') ? resolve(undefined) : reject(error)));
    server.listen({ path: `\0${name}` }, () => resolve(server));
    server.unref();
  });
}
