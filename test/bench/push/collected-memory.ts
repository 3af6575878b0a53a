import { setTimeout as sleep } from 'node:timers/promises';
import type { Inspector } from '../../harness/inspector.ts';
import { memoryOf } from '../memory-usage.ts';

/**
 * Cached lists refer weakly to their sources. The first collection finds that a list is unused, the next one frees the list and finds its sources
 * unused. In between, the server runs its finalizers in other event loop iterations.
 */
const collections = 3;
const finalizersMs = 100;

/** Spaces of V8's heap with machine code, bytecode and their metadata. */
const codeBytes = `process.getBuiltinModule('node:v8').getHeapSpaceStatistics()
  .filter(({ space_name }) => /^(code|trusted)/.test(space_name)).reduce((sum, { space_used_size }) => sum + space_used_size, 0)`;

/** Memory of a server after garbage collections. */
export interface CollectedMemory {
  readonly heapMib: number;
  /** Heap without code, which is compiled once for all connections. */
  readonly objectsMib: number;
  /** Array buffers outside of the heap. */
  readonly buffersMib: number;
  readonly rssMib: number;
}

export async function collectedMemory(pid: number, inspector: Inspector): Promise<CollectedMemory> {
  for (let time = 1; time <= collections; time++) {
    await inspector.call('HeapProfiler.collectGarbage');
    await sleep(finalizersMs);
  }
  const { usedSize, backingStorageSize } = (await inspector.call('Runtime.getHeapUsage')) as {
    usedSize: number;
    backingStorageSize: number;
  };
  const { result } = (await inspector.call('Runtime.evaluate', { expression: codeBytes, returnByValue: true })) as {
    result: { value: number };
  };
  const mib = (bytes: number): number => bytes / 1024 ** 2;
  return {
    heapMib: mib(usedSize),
    objectsMib: mib(usedSize - result.value),
    buffersMib: mib(backingStorageSize),
    rssMib: memoryOf(pid).rssMib,
  };
}
