import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { expect, test } from 'vitest';
import { readSecretRequest } from './sds-messages.ts';

function requestFor(names: readonly string[]): Uint8Array {
  const writer = new BinaryWriter();
  for (const name of names) writer.tag(3, WireType.LengthDelimited).string(name);
  return writer.finish();
}

test.each<[string, readonly string[]]>([
  ['a long name', ['n'.repeat(4_097)]],
  ['many names', Array.from({ length: 101 }, (_, i) => `${i}`)],
  ['names that are long together', Array.from({ length: 20 }, (_, i) => `${i}`.padEnd(4_000, '-'))],
])('a request with %s is refused: it is kept as long as its stream is there', (_, names) => {
  expect(() => readSecretRequest(requestFor(names))).toThrow(/^a name has|^more than/);
  expect(readSecretRequest(requestFor(names.slice(0, 7).map((name) => name.slice(0, 4_000)))).names).toHaveLength(
    Math.min(7, names.length),
  );
});

test('a name that is said twice is asked for once', () => {
  expect(readSecretRequest(requestFor(['default', 'ROOTCA', 'default'])).names).toEqual(['default', 'ROOTCA']);
});
