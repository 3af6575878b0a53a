import { describe, expect, it } from 'vitest';
import { namesIn } from './named-resources.ts';
import { proxyText } from './proxy-text.ts';

describe('namesIn', () => {
  it.each<readonly [string, readonly string[], readonly string[]]>([
    ['Error adding/updating listener(s) 0.0.0.0_80: no', ['0.0.0.0_80', '80', 'virtualInbound'], ['0.0.0.0_80']],
    ['cluster(s) outbound|80||a.b.c: no, outbound|80||x: no', ['outbound|80||a', 'outbound|80||x'], ['outbound|80||x']],
    ['it is outbound|80||a. It will not do', ['outbound|80||a'], ['outbound|80||a']],
    ['Proto constraint validation failed: name: "80"', ['80', '8080'], ['80']],
    ['nothing', ['', 'some'], []],
  ])('finds the resource names in the error text "%s"', (message, names, foundNames) => {
    expect(namesIn(message, names)).toEqual(foundNames);
  });

  it('processes long texts and thousands of names in bounded time', () => {
    const names = Array.from({ length: 5_000 }, (_, index) => `outbound|80||service-${index}.example.com`);
    expect(namesIn(`${'outbound|80||service-'.repeat(50_000)} ${names[7]}`, names)).toEqual([]);
  });
});

describe('proxyText', () => {
  it.each([
    ['a\u0000b\u001b[31mc', 'a\\x00b\\x1b[31mc'],
    ['one\r\n  two\u2028three', 'one\\r\\n  two\\u2028three'],
    ['left\u202eright\u200b', 'left\\u202eright\\u200b'],
    ['half \ud800 of it', 'half \\ud800 of it'],
    ['\n\t ', ''],
    ['Grüße, 世界 😀', 'Grüße, 世界 😀'],
  ])('converts %j to %j', (text, plain) => {
    expect(proxyText(text)).toBe(plain);
  });

  it('truncates a long text without splitting a surrogate pair', () => {
    expect(proxyText('x'.repeat(1_000_000))).toBe(`${'x'.repeat(511)}…`);
    expect(proxyText('😀'.repeat(400), 3)).toBe('😀…');
  });
});
