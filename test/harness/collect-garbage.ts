/** A full garbage collection, for tests of retained memory. */
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

export async function collectGarbage(): Promise<void> {
  // Dereferenced weak references stay until the current job ends.
  await sleep(10);
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
}
