import { setTimeout as sleep } from 'node:timers/promises';
import type { Inspector } from '../../harness/inspector.ts';
import { memoryOf } from '../memory-usage.ts';

/**
 * Lists are kept as long as somebody wants them, which is known weakly: the first collection finds that nobody does, the next one frees them
 * and finds the same of what they were made from. In between the server is told, in turns of its own.
 */
const collections = 3;
const finalizersMs = 100;

/** Spaces of V8's heap with machine code, bytecode and what belongs to them. */
const codeBytes = `process.getBuiltinModule('node:v8').getHeapSpaceStatistics()
  .filter(({ space_name }) => /^(code|trusted)/.test(space_name)).reduce((sum, { space_used_size }) => sum + space_used_size, 0)`;

/** What a server holds after it was collected. */
export interface CollectedMemory {
  readonly heapMib: number;
  /** Of that, objects: without code, which is compiled once for all of them. */
  readonly objectsMib: number;
  /** What array buffers hold outside of the heap. */
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
