import { describe, expect, it } from 'vitest';
import { formatAddress, parseListenAddress } from './listen-address.ts';

describe('parseListenAddress', () => {
  it.each([
    [':15010', { host: '', port: 15010 }],
    ['127.0.0.1:8080', { host: '127.0.0.1', port: 8080 }],
    ['localhost:0', { host: 'localhost', port: 0 }],
    ['[::1]:8080', { host: '::1', port: 8080 }],
  ])('parses the address %s', (text, address) => {
    expect(parseListenAddress('--httpAddr', text)).toEqual(address);
    expect(formatAddress(address)).toBe(text);
  });

  it('returns undefined for an empty string', () => {
    expect(parseListenAddress('--httpAddr', '')).toBeUndefined();
  });

  it.each(['8080', 'localhost', 'localhost:http', ':70000', '::1:80:x'])(
    'rejects the address %s and names the flag',
    (text) => {
      expect(() => parseListenAddress('--httpAddr', text)).toThrow(
        expect.objectContaining({
          code: 'FLAG_INVALID',
          message: expect.stringMatching(`--httpAddr: .*got "${text}"`),
        }),
      );
    },
  );
});
