import { expect, test } from 'vitest';
import type { EnvoyLogLine } from './envoy-log.ts';
import { EnvoyLogRecords } from './envoy-log-records.ts';

/** Takes lines at times of a test clock, and returns the recorded texts. */
function recording(): {
  at: (ms: number) => void;
  take: (...texts: string[]) => void;
  end: () => void;
  texts: string[];
} {
  let now = 0;
  const texts: string[] = [];
  const records = new EnvoyLogRecords(
    ({ text }) => texts.push(text),
    () => now,
  );
  return {
    at: (ms) => {
      now = ms;
    },
    take: (...lines) => {
      for (const text of lines) records.record({ level: 'info', text });
    },
    end: () => records.end(),
    texts,
  };
}

const createLines = (count: number): string[] => Array.from({ length: count }, (_, index) => `line ${index}`);

test('records a line with its level and component', () => {
  const recordedLines: EnvoyLogLine[] = [];
  new EnvoyLogRecords((line) => recordedLines.push(line)).record({ level: 'warn', component: 'config', text: 'a' });
  expect(recordedLines).toEqual([{ level: 'warn', component: 'config', text: 'a' }]);
});

test('records bursts of 200 lines, then 100 lines per second, and counts omitted lines', () => {
  const { at, take, texts } = recording();
  take(...createLines(500));
  expect(texts).toEqual(createLines(200));
  at(500);
  take(...createLines(60));
  expect(texts).toHaveLength(250);
  at(1_000);
  take('after a second');
  expect(texts.slice(250)).toEqual(['… 310 lines omitted', 'after a second']);
});

test('records the number of omitted lines at most once per second', () => {
  const { at, take, texts } = recording();
  for (let ms = 0; ms < 10_000; ms++) {
    at(ms);
    take('a', 'b');
  }
  const counts = texts.filter((text) => text.endsWith('lines omitted'));
  expect(counts.length).toBeGreaterThanOrEqual(8);
  expect(counts.length).toBeLessThanOrEqual(10);
  expect(texts.length - counts.length).toBeGreaterThanOrEqual(1_190);
  expect(texts.length - counts.length).toBeLessThanOrEqual(1_200);
});

test('records the number of omitted lines when the process exits', () => {
  const { take, end, texts } = recording();
  take(...createLines(203));
  end();
  expect(texts.at(-1)).toBe('… 3 lines omitted');
  end();
  expect(texts).toHaveLength(201);
});

test('omits the lines of a private key', () => {
  const { take, texts } = recording();
  take(
    'before',
    '-----BEGIN EC PRIVATE KEY-----',
    'MHcCAQEEIBkg',
    'AwEHoUQDQgAE',
    '-----END EC PRIVATE KEY-----',
    'after',
  );
  // The first line remains, for the redaction.
  expect(texts).toEqual(['before', '-----BEGIN EC PRIVATE KEY-----', 'after']);
});

test('continues recording after an incomplete private key or one in a single line', () => {
  const recordedTexts: string[] = [];
  const records = new EnvoyLogRecords(({ text }) => recordedTexts.push(text));
  const main = { level: 'info', component: 'main' } as const;
  records.record({ ...main, text: '-----BEGIN PRIVATE KEY-----' });
  records.record({ level: 'info', text: 'MHcCAQEEIBkg' });
  records.record({ ...main, text: 'started' });
  records.record({ level: 'info', text: 'a list' });
  records.record({ ...main, text: '"-----BEGIN PRIVATE KEY-----\\nMHc\\n-----END PRIVATE KEY-----\\n"' });
  records.record({ level: 'info', text: 'another list' });
  expect(recordedTexts.filter((text) => !text.includes('BEGIN'))).toEqual(['started', 'a list', 'another list']);
});

test('truncates a long line at white space', () => {
  const { take, texts } = recording();
  take(`${'word '.repeat(3_276)}${'x'.repeat(10_000)}`, 'y'.repeat(20_000));
  expect(texts).toEqual([`${'word '.repeat(3_276)}… (26380 characters)`, '… (20000 characters)']);
});
