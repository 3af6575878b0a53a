/**
 * The right to decide under a base id, which the kernel takes from whoever dies: an abstract socket, whose name all of a network namespace
 * know. Where a stranger has that name, agents of one container have the right to what runs there all the same, each under a name that
 * nobody could know before.
 */
import { randomBytes } from 'node:crypto';
import { createServer, type Server } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { isSystemError } from '../../../runtime/errors.ts';
import { areHeldBySibling, inContainer, isWantedBySibling, nameOfId } from './base-id-holder.ts';

/** Closed, it is given up. */
export type Right = Pick<Server, 'close'>;

const pollMs = 25;
/** How long a name that no process has is waited for: the kernel may keep that of a killed agent for a moment. */
const strangerMs = 100;

/** The right to the id for as long as this process lives and does not close it; undefined when another one has it. */
export const holdName = (baseId: number): Promise<Server | undefined> => hold(nameOfId(baseId));

/**
 * The right to an id under which Envoys of this container run: nobody but its agents can go on with them.
 *
 * @param isOver it is waited for no more
 * @returns undefined when another agent of this container has it
 */
export async function holdOneWay(
  baseId: number,
  { isOver, onStranger }: { isOver: () => boolean; onStranger: (baseId: number) => void },
): Promise<Right | undefined> {
  const isStrangersFrom = performance.now() + strangerMs;
  for (;;) {
    const named = await holdName(baseId);
    // An agent that has the right without the name is not kept out by the name; the order is as in `holdInContainer`.
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
    // Two that saw each other give up both, and do not meet for ever.
    await sleep(pollMs * (0.5 + Math.random()));
  }
}

/** First one's own name, which stands from then on, and then a look at those of others: of two at least one sees the other. */
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
