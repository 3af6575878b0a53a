import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { expect, test } from 'vitest';
import { readSecretRequest, SecretRequestError } from './sds-messages.ts';

function requestFor(names: readonly string[]): Uint8Array {
  const writer = new BinaryWriter();
  for (const name of names) writer.tag(3, WireType.LengthDelimited).string(name);
  return writer.finish();
}

test.each<[string, readonly string[], string]>([
  ['a name above the limit', ['n'.repeat(4_097)], 'secret name must have at most 4096 characters, got 4097'],
  ['names above the limit', Array.from({ length: 101 }, (_, i) => `${i}`), 'must request at most 100 secrets'],
  [
    'names above the limit in total',
    Array.from({ length: 20 }, (_, i) => `${i}`.padEnd(4_000, '-')),
    'secret names must have at most 32768 characters in total, got 80000',
  ],
])('rejects a request with %s, because it would stay in memory until its stream ends', (_, names, message) => {
  expect(() => readSecretRequest(requestFor(names))).toThrow(new SecretRequestError(message));
  expect(readSecretRequest(requestFor(names.slice(0, 7).map((name) => name.slice(0, 4_000)))).names).toHaveLength(
    Math.min(7, names.length),
  );
});

test('counts a repeated name once', () => {
  expect(readSecretRequest(requestFor(['default', 'ROOTCA', 'default'])).names).toEqual(['default', 'ROOTCA']);
});
