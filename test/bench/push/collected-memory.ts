import type { Inspector } from '../../harness/inspector.ts';
import { memoryOf } from '../memory-usage.ts';

/** Of a server, after a collection. */
export interface CollectedMemory {
  readonly heapMib: number;
  /** What array buffers hold outside of the heap. */
  readonly buffersMib: number;
  readonly rssMib: number;
}

export async function collectedMemory(pid: number, inspector: Inspector): Promise<CollectedMemory> {
  // What a first collection finds dead holds buffers, and lists that are kept as long as somebody wants them: the second one frees these.
  for (let i = 0; i < 2; i++) await inspector.call('HeapProfiler.collectGarbage');
  const { usedSize, backingStorageSize } = (await inspector.call('Runtime.getHeapUsage')) as {
    usedSize: number;
    backingStorageSize: number;
  };
  const mib = (bytes: number): number => bytes / 1024 ** 2;
  return { heapMib: mib(usedSize), buffersMib: mib(backingStorageSize), rssMib: memoryOf(pid).rssMib };
}
