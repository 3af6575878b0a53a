/** A full garbage collection, for tests of what is kept. */
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

export async function collectGarbage(): Promise<void> {
  // What weak references were asked for stays until the present job is over.
  await sleep(10);
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
}
