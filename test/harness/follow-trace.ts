import { closeSync, openSync, readSync, statSync } from 'node:fs';
import type { TraceLine } from '../../src/runtime/trace/trace.ts';

const everyMs = 40;

/**
 * Reads a trace file while a program writes it, from its beginning, through rotations.
 * @returns a function that stops reading after all lines written so far are delivered
 */
export function followTrace(path: string, onLine: (line: TraceLine) => void): () => void {
  let inode = 0;
  let offset = 0;
  let pendingBytes = Buffer.alloc(0);

  const read = (): void => {
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats === undefined) return;
    if (stats.ino !== inode) {
      inode = stats.ino;
      offset = 0;
      pendingBytes = Buffer.alloc(0);
    }
    if (stats.size <= offset) return;
    const chunk = readFrom(path, offset, stats.size - offset);
    offset += chunk.length;
    const bytes = Buffer.concat([pendingBytes, chunk]);
    const end = bytes.lastIndexOf('\n') + 1;
    pendingBytes = bytes.subarray(end);
    for (const line of bytes.toString('utf8', 0, end).split('\n')) {
      if (line !== '') onLine(JSON.parse(line) as TraceLine);
    }
  };

  const timer = setInterval(read, everyMs);
  return () => {
    clearInterval(timer);
    read();
  };
}

function readFrom(path: string, offset: number, length: number): Buffer {
  const fd = openSync(path, 'r');
  try {
    const chunk = Buffer.alloc(length);
    return chunk.subarray(0, readSync(fd, chunk, 0, length, offset));
  } finally {
    closeSync(fd);
  }
}
