/** Process of the untrusted clients; see hostile-process.ts. */
import { type AttackName, attacks, Stranger } from './attacks.ts';
import type { HostileAnswer, HostileOrder } from './hostile-process.ts';

let ending: AbortController | undefined;

function answer(message: HostileAnswer): void {
  process.send?.(message);
}

async function begin(name: AttackName, port: number): Promise<void> {
  ending = new AbortController();
  const stranger = new Stranger(port);
  answer({ type: 'begun' });
  const done = await attacks[name](stranger, ending.signal);
  stranger.client.close();
  answer({ type: 'ended', done });
}

process.on('message', (order: HostileOrder) => {
  if (order.type === 'end') ending?.abort();
  else void begin(order.attack, order.port);
});
process.on('disconnect', () => process.exit(0));
process.on('SIGINT', () => {});
answer({ type: 'ready' });
