/**
 * Ownership of a base ID: an abstract socket, which the kernel closes when its owner exits. Its name is known to all processes of the network
 * namespace. If an unrelated process has taken it, the agents of one container settle the ownership by sockets with unpredictable names.
 */
import { randomBytes } from 'node:crypto';
import { createServer, type Server } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { isSystemError } from '../../../runtime/errors.ts';
import { areHeldBySibling, inContainer, isWantedBySibling, nameOfId } from './base-id-holder.ts';

/** Closing it gives up the ownership. */
export type Right = Pick<Server, 'close'>;

const pollMs = 25;
/** How long to wait for a name without a known owner: the kernel may keep the name of a killed agent for a moment. */
const strangerMs = 100;

/** Owns the base ID until the socket is closed or the process exits; `undefined` if another process owns it. */
export const holdName = (baseId: number): Promise<Server | undefined> => hold(nameOfId(baseId));

/**
 * Owns a base ID under which Envoys of this container run; only its agents can adopt them.
 *
 * @param isOver ends the wait
 * @returns undefined if another agent of this container owns it
 */
export async function holdOneWay(
  baseId: number,
  { isOver, onStranger }: { isOver: () => boolean; onStranger: (baseId: number) => void },
): Promise<Right | undefined> {
  const isStrangersFrom = performance.now() + strangerMs;
  for (;;) {
    const named = await holdName(baseId);
    // Another agent may own the ID without the name. Checked in the same order as in `holdInContainer`.
    if (named !== undefined && !isWantedBySibling(baseId)) return named;
    named?.close();
    if (named === undefined && performance.now() > isStrangersFrom) {
      const held = await holdInContainer(baseId);
      if (held !== undefined) {
        onStranger(baseId);
        return held;
      }
    }
    if (isOver()) return undefined;
    // Random, so that two agents that give up because of each other do not collide again.
    await sleep(pollMs * (0.5 + Math.random()));
  }
}

/** Takes its own name before it checks those of others: of two agents, at least one detects the other. */
async function holdInContainer(baseId: number): Promise<Right | undefined> {
  const names = inContainer(baseId, randomBytes(8).toString('hex'));
  const wanted = await hold(names.wanted);
  const isAnothers = wanted === undefined || areHeldBySibling([baseId]) || isWantedBySibling(baseId);
  const held = isAnothers ? undefined : await hold(names.held);
  if (held === undefined) {
    wanted?.close();
    return undefined;
  }
  return {
    close() {
      held.close();
      wanted?.close();
      return held;
    },
  };
}

function hold(name: string): Promise<Server | undefined> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', (error) => (isSystemError(error, 'EADDRINUSE') ? resolve(undefined) : reject(error)));
    server.listen({ path: `\0${name}` }, () => resolve(server));
    server.unref();
  });
}
