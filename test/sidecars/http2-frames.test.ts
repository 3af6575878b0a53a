import { expect, test } from 'vitest';
import { type FrameHead, FrameReader, flags, frame, frameTypes, settingsOf } from './http2-frames.ts';

/** Output of the parser for bytes in pieces of this length. */
function read(bytes: Buffer, pieceLength: number): { data: string; frames: FrameHead[]; payloads: string[] } {
  const received = { data: '', frames: [] as FrameHead[], payloads: [] as string[] };
  const reader = new FrameReader({
    onData: (chunk) => {
      received.data += chunk.toString();
    },
    onFrame: (head, payload) => {
      received.frames.push(head);
      received.payloads.push(payload.toString());
    },
  });
  for (let at = 0; at < bytes.length; at += pieceLength) {
    const chunk = bytes.subarray(at, at + pieceLength);
    reader.take(chunk, chunk.length);
  }
  return received;
}

const bytes = Buffer.concat([
  frame(frameTypes.data, 0, 1, Buffer.from('hello ')),
  frame(frameTypes.ping, 0, 0, Buffer.from('12345678')),
  // Padded: the first byte is the length of the padding at the end.
  frame(frameTypes.data, flags.padded, 1, Buffer.concat([Buffer.from([3]), Buffer.from('world'), Buffer.alloc(3)])),
  frame(frameTypes.settings, flags.ack, 0, Buffer.alloc(0)),
  frame(frameTypes.data, flags.endStream, 1, Buffer.alloc(0)),
]);

test.each([1, 2, 7, 1_000])('HTTP/2 frames are parsed from pieces of %i bytes', (pieceLength) => {
  const { data, frames, payloads } = read(bytes, pieceLength);
  expect(data).toBe('hello world');
  expect(frames.map(({ type, length, stream }) => [type, length, stream])).toEqual([
    [frameTypes.data, 6, 1],
    [frameTypes.ping, 8, 0],
    [frameTypes.data, 9, 1],
    [frameTypes.settings, 0, 0],
    [frameTypes.data, 0, 1],
  ]);
  expect(payloads).toEqual(['', '12345678', '', '', '']);
});

test('the settings that limit a sender are parsed', () => {
  const payload = Buffer.from([0, 3, 0, 0, 0, 100, 0, 4, 0, 1, 0, 0, 0, 5, 0, 0, 0x40, 0]);
  expect(settingsOf(payload)).toEqual({ initialWindow: 65_536, maxFrame: 16_384 });
});
