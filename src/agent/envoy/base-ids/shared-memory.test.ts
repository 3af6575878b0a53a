import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createActor, toPromise } from 'xstate';
import { codedError } from '../../../../test/fixtures/error-details.ts';
import { envoyBinary } from '../../../../test/fixtures/real-envoy.ts';
import { repairSharedMemory } from './shared-memory.ts';

/** Writes the shared memory of base ID 7. */
function sharedMemory(bytes: Buffer): { directory: string; file: string } {
  const directory = mkdtempSync(join(tmpdir(), 'chartpilot-shm-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const file = join(directory, 'envoy_shared_memory_70');
  writeFileSync(file, bytes);
  return { directory, file };
}

function repair(directory: string, binary = envoyBinary()): Promise<void> {
  const logic = repairSharedMemory({ binary, sharedMemoryDir: directory });
  const actor = createActor(logic, { input: { baseId: 7 } });
  actor.subscribe({ error: () => {} });
  return toPromise(actor.start());
}

const markedBytes = (flags: number): Buffer => {
  const bytes = Buffer.alloc(104, 0xaa);
  bytes[96] = flags;
  return bytes;
};

test('clears only the flag of an initializing epoch', async () => {
  const { directory, file } = sharedMemory(markedBytes(0x03));
  await repair(directory);
  expect(readFileSync(file)).toEqual(markedBytes(0x02));
});

test.each([
  ['without the flag', markedBytes(0x02), { expected: /^an initializing epoch/, got: 'none' }],
  ['of another size', Buffer.alloc(128, 1), { expected: /^104 bytes/, got: '128' }],
])('does not change shared memory %s', async (_, bytes, { expected, got }) => {
  const { directory, file } = sharedMemory(bytes);
  await expect(repair(directory)).rejects.toThrow(
    codedError('SHARED_MEMORY_UNKNOWN', { expected: expect.stringMatching(expected), got }),
  );
  expect(readFileSync(file)).toEqual(bytes);
});

test('does not change shared memory of another Envoy version', async () => {
  const bytes = markedBytes(0x01);
  const { directory, file } = sharedMemory(bytes);
  await expect(repair(directory, '/bin/true')).rejects.toThrow(
    codedError('SHARED_MEMORY_UNKNOWN', { expected: expect.stringMatching(/^hot restart version 11\.104/) }),
  );
  expect(readFileSync(file)).toEqual(bytes);
});
