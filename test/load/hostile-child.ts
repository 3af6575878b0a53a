/** Process of the untrusted clients; see hostile-process.ts. */
import { type AttackName, attacks, HostileClient } from './attacks.ts';
import type { HostileOrder, HostileReport } from './hostile-process.ts';

let ending: AbortController | undefined;

function respond(message: HostileReport): void {
  process.send?.(message);
}

async function startAttack(name: AttackName, port: number): Promise<void> {
  ending = new AbortController();
  const client = new HostileClient(port);
  respond({ type: 'begun' });
  const doneCount = await attacks[name](client, ending.signal);
  client.client.close();
  respond({ type: 'ended', done: doneCount });
}

process.on('message', (order: HostileOrder) => {
  if (order.type === 'end') ending?.abort();
  else void startAttack(order.attack, order.port);
});
process.on('disconnect', () => process.exit(0));
process.on('SIGINT', () => {});
respond({ type: 'ready' });
