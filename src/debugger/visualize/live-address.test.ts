import { describe, expect, test } from 'vitest';
import { ChartpilotError } from '../../runtime/errors.ts';
import { formatLiveAddress, parseLiveAddress } from './live-address.ts';

describe('the parser of the address of a running program', () => {
  test.each([
    ['127.0.0.1:15020', '127.0.0.1:15020'],
    ['localhost:15020', 'localhost:15020'],
    ['http://localhost:15020/', 'localhost:15020'],
    ['[::1]:15014', '[::1]:15014'],
    ['15020', '127.0.0.1:15020'],
  ])('accepts %s', (text, formatted) => {
    expect(formatLiveAddress(parseLiveAddress(text))).toBe(formatted);
  });

  test.each([
    '',
    'localhost',
    'localhost:0',
    'localhost:70000',
    'https://localhost:15020',
    '127.0.0.1:15020/debug',
    '::1:5',
  ])('rejects %j', (text) => {
    expect(refusal(() => parseLiveAddress(text)).fields).toEqual({
      path: '--attach',
      expected: 'HOST:PORT or PORT',
      got: text,
    });
  });

  test.each([
    '10.0.0.7:15020',
    'sidecar.demo.svc:15020',
    '0.0.0.0:15020',
    '[fe80::1]:15020',
    '127.0.0.1.evil.example:15020',
  ])('rejects %s of another host, with instructions for port forwarding', (text) => {
    const error = refusal(() => parseLiveAddress(text));
    expect(error.fields).toEqual({ path: '--attach', expected: 'a loopback address', got: text });
    expect(error.hint).toContain('kubectl port-forward POD 15020');
  });
});

function refusal(run: () => unknown): ChartpilotError {
  try {
    run();
  } catch (error) {
    if (error instanceof ChartpilotError) return error;
  }
  throw new Error('it was not refused');
}
