import { expect, test } from 'vitest';
import { isLoopback } from './loopback.ts';

test.each([
  '127.0.0.1',
  '127.255.255.254',
  '::1',
  '0:0:0:0:0:0:0:1',
  '::ffff:127.0.0.1',
  '::FFFF:127.1.2.3',
  '::ffff:7f00:1',
])('%s is a loopback address', (address) => expect(isLoopback(address)).toBe(true));

test.each([
  '126.255.255.255',
  '128.0.0.1',
  '::',
  '::2',
  '::ffff:10.0.0.1',
  '1.127.0.0',
  '127.example',
  '127.0.0',
  'localhost',
  '',
  undefined,
])('%s is not a loopback address', (address) => expect(isLoopback(address)).toBe(false));
