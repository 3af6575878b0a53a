/**
 * Preloaded into a server: on SIGUSR2 (or HEAP_METER_SIGNAL) it collects all garbage and prints the remaining MiB. The allocator keeps further
 * resident memory for reuse.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString, writeHeapSnapshot } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc');
const mib = (bytes) => (bytes / 1024 / 1024).toFixed(1);

process.on(process.env.HEAP_METER_SIGNAL ?? 'SIGUSR2', async () => {
  // Weakly referenced objects, and objects that only they reference, need another collection.
  for (let i = 0; i < 3; i++) {
    gc();
    await sleep(50);
  }
  const { heapUsed, external, arrayBuffers, rss } = process.memoryUsage();
  if (process.env.HEAP_SNAPSHOTS !== undefined)
    writeHeapSnapshot(`${process.env.HEAP_SNAPSHOTS}/${Date.now()}.heapsnapshot`);
  process.stderr.write(
    `memory: heap ${mib(heapUsed)} external ${mib(external)} buffers ${mib(arrayBuffers)} resident ${mib(rss)}\n`,
  );
});
