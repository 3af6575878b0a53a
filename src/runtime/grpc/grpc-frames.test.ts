import fc from 'fast-check';
import { expect, test } from 'vitest';
import { collectGarbage } from '../../../test/harness/collect-garbage.ts';
import { type FrameLimits, type FramePiece, FrameReader, frameOf } from './grpc-frames.ts';

/** The pieces that a reader returns for bytes in chunks of these lengths. */
function read(bytes: Buffer, lengths: readonly number[], limits: FrameLimits): FramePiece[] {
  const reader = new FrameReader(limits);
  const pieces: FramePiece[] = [];
  let at = 0;
  for (let i = 0; at < bytes.length; i++) {
    const chunk = bytes.subarray(at, at + (lengths[i % lengths.length] ?? 1));
    at += chunk.length;
    reader.push(chunk, (piece) => pieces.push({ ...piece, bytes: Buffer.from(piece.bytes) }));
  }
  return pieces;
}

test('gRPC messages up to a limit are returned in one piece, and longer ones in pieces, regardless of chunk sizes', () => {
  fc.assert(
    fc.property(
      fc.array(fc.uint8Array({ maxLength: 60 }), { maxLength: 6 }),
      fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 5 }),
      fc.integer({ min: 0, max: 30 }),
      fc.integer({ min: 0, max: 30 }),
      (messages, lengths, wholeBytes, peek) => {
        const frames = Buffer.concat(messages.map(frameOf));
        const peekBytes = Math.min(peek, wholeBytes);
        const pieces = read(frames, lengths, { wholeBytes, peekBytes });
        expect(Buffer.concat(pieces.map(({ bytes }) => bytes))).toEqual(frames);
        expect(pieces.filter(({ isFirst }) => isFirst)).toHaveLength(messages.length);
        expect(pieces.filter(({ isLast }) => isLast)).toHaveLength(messages.length);
        const firsts = pieces.filter(({ isFirst }) => isFirst);
        for (const [index, message] of messages.entries()) {
          const minSize = message.length <= wholeBytes ? message.length : Math.min(message.length, peekBytes);
          expect(firsts[index]!.bytes.length).toBeGreaterThanOrEqual(5 + minSize);
          if (message.length <= wholeBytes) expect(firsts[index]!.isLast).toBe(true);
        }
      },
    ),
  );
});

test('a gRPC message that is too long or compressed is rejected after its header', () => {
  const longFrame = frameOf(Buffer.alloc(11)).subarray(0, 5);
  expect(() => read(longFrame, [5], { wholeBytes: 10, maxBytes: 10 })).toThrow(
    expect.objectContaining({ code: 'RESOURCE_EXHAUSTED', details: expect.stringContaining('11 bytes') }),
  );
  expect(() => read(Buffer.from('GET / HTTP/1.1'), [3], { wholeBytes: 10 })).toThrow(
    expect.objectContaining({ code: 'INTERNAL', details: expect.stringContaining('compressed') }),
  );
});

test('a gRPC message in chunks of one byte uses memory only for its received bytes', async () => {
  const heldBytes = async (): Promise<number> => {
    await collectGarbage();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };
  const head = frameOf(Buffer.alloc(1024 * 1024)).subarray(0, 5);
  const previous = await heldBytes();
  const readers = Array.from({ length: 40 }, () => new FrameReader({ wholeBytes: 1024 * 1024 }));
  for (const reader of readers) reader.push(head, () => {});
  expect((await heldBytes()) - previous).toBeLessThan(2_000_000);
  for (let i = 0; i < 300_000; i++) readers[0]!.push(Buffer.allocUnsafe(1), () => {});
  expect((await heldBytes()) - previous).toBeLessThan(5_000_000);
  expect(readers).toHaveLength(40);
});
