import fc from 'fast-check';
import { expect, test } from 'vitest';
import { keptLines } from './exposition-lines.ts';

const good = [
  '# HELP http_requests_total The total number of \\"requests\\".',
  '# TYPE http_requests_total counter',
  'http_requests_total 1027',
  'http_requests_total{method="post",code="200"} 1027 1395066363000',
  'http_requests_total{method="post",code="200",} 1027',
  'msdos_file_access_time_seconds{path="C:\\\\DIR\\\\FILE.TXT",error="Cannot find file:\\n\\"FILE.TXT\\" }"} 1.458255915e9',
  'metric_without_labels 12.47',
  'something_weird{problem="division by zero"} +Inf -3982045',
  'a{} NaN',
  'a { b = "c" , d = "e" }  -.5e-3',
  '{"a.dotted.name",label="x"} 1',
  'ns:rule 0x1F',
  'foo_bucket{le="0.1"} 8 # {trace_id="abc"} 0.054 1520879607.7',
  '# UNIT foo_seconds seconds',
  '# a comment',
  '# TYPE foo stateset',
  'näme{l="Füße"} 1'.replace('näme', 'name'),
];
const bad = [
  '<html>',
  'a',
  'a ',
  '1a 1',
  'a b',
  'a{ 1',
  'a{b} 1',
  'a{b="c} 1',
  'a{b="c"d="e"} 1',
  'a 1 2 3',
  'a 1,5',
  '# TYPE a banana',
  '# TYPE a',
  '{"error": "not found"}',
];

test('what a scraper takes is kept, line by line', () => {
  for (const line of good)
    expect(keptLines(`${line}\n`), line).toEqual({ text: `${line}\n`, dropped: 0, isOver: false });
});

test('what it refuses is dropped, and the rest stays', () => {
  for (const line of bad) {
    expect(keptLines(`a 1\n${line}\nb 2\n`), line).toEqual({ text: 'a 1\nb 2\n', dropped: 1, isOver: false });
  }
});

test('empty lines are left out, and what comes after the end of the body', () => {
  expect(keptLines('a 1\n\n\r\nb 2\n# EOF\nc 3\n')).toEqual({ text: 'a 1\nb 2\n', dropped: 0, isOver: true });
});

test('no line of 64 KiB takes long, whatever is in it', () => {
  const length = 64 * 1024;
  const lines = [
    ...['a', ' ', '{', '"', '\\', '}', 'a="b",', '{"', '} ', '1', '\t', ',', '#', '{a="', '""', '1e', 'a{} '],
    ...['{a="b",', '{"a"="', '{ ', '"\\"'],
  ].flatMap((piece) => [piece.repeat(length / piece.length), `a{${piece.repeat(length / piece.length)}`]);
  // Digits in each place where a number may be.
  const digits = '1'.repeat(length / 2);
  for (const before of ['a ', 'a 1 ', 'a 1 # {} ', `a 1 # {} ${digits} `, 'a 1.', 'a 1e', 'a 1 1 # {} 1.']) {
    lines.push(`${before}${digits}`, `${before}${digits}x`, `${before}${digits}.${digits}x`);
  }
  for (const line of lines) {
    const { user } = process.cpuUsage();
    keptLines(`${line}!\n`);
    expect((process.cpuUsage().user - user) / 1_000, line.slice(0, 20)).toBeLessThan(50);
  }
});

test('§6.4 lines that a scraper takes are the very same text, not a copy line by line', () => {
  const lines =
    '# HELP a b\n# TYPE a counter\na{l="x\\"}\\n",m="y"} 1 1700000000\nb 0x1f\nc{} +Inf # {t="1"} 0.5 7\r\n';
  expect(keptLines(lines)).toEqual({ text: lines, dropped: 0, isOver: false });
});

test('§6.4 a text is kept as its lines are, one by one', () => {
  const piece = fc.constantFrom(
    ...[
      'a',
      '{',
      '}',
      '"',
      '\\',
      'l="x"',
      ',',
      ' ',
      '\t',
      '\r',
      '\n',
      '\n',
      '1',
      '#',
      '# EOF',
      '# TYPE a gauge',
      '# TYPE',
      'NaN',
      'é',
    ],
    ...['a 1\n', 'b{c="d"} 2\n', '# HELP x\n'],
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
      const text = pieces.join('');
      let kept = '';
      let dropped = 0;
      let isOver = false;
      for (const line of text.split('\n')) {
        const one = keptLines(line === '' ? '' : `${line}\n`);
        if (!isOver) [kept, dropped] = [kept + one.text, dropped + one.dropped];
        isOver ||= one.isOver;
      }
      expect(keptLines(text)).toEqual({ text: kept, dropped, isOver });
    }),
    { numRuns: 2_000 },
  );
});
