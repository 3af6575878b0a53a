import fc from 'fast-check';
import { expect, test } from 'vitest';
import { validLines } from './exposition-lines.ts';

const validTexts = [
  '# HELP http_requests_total The total number of \\"requests\\".',
  '# TYPE http_requests_total counter',
  'http_requests_total 1027',
  'http_requests_total{method="post",code="200"} 1027 1395066363000',
  'http_requests_total{method="post",code="200",} 1027',
  'msdos_file_access_time_seconds{path="C:\\\\DIR\\\\FILE.TXT",error="Cannot find file:\\n\\"FILE.TXT\\" }"} 1.458255915e9',
  'metric_without_labels 12.47',
  'something_weird{problem="division by zero"} +Inf -3982045',
  'a{} NaN',
  '{"a.dotted.name",label="x"} 1',
  'a{"a.dotted.label"="x"} 1',
  '# UNIT foo_seconds seconds',
  Buffer.from('name{l="Füße"} 1').toString('latin1'),
];
const inText = [
  'a { b = "c" , d = "e" }  -.5e-3',
  '# a comment',
  '#',
  '#!/bin/sh',
  '# TYPE a untyped',
  '# HELP a',
  '# UNIT foo seconds',
  'a\t1',
  'a 1 ',
];
const inOpenMetrics = [
  'foo_bucket{le="0.1"} 8 # {trace_id="abc"} 0.054 1520879607.7',
  'foo_total 1 1520879607.7',
  '# TYPE foo stateset',
  '# TYPE foo unknown',
];
const invalidTexts = [
  '<html>',
  'a',
  'a ',
  '1a 1',
  'a b',
  'a{ 1',
  'a{b} 1',
  'a{b="c} 1',
  'a{b="c"d="e"} 1',
  'a{b:c="d"} 1',
  'a{"b"} 1',
  '{a="b"} 1',
  '{} 1',
  'a 0x1F',
  'a 1 2 3',
  'a 1,5',
  '# TYPE a banana',
  '# TYPE a',
  '{"error": "not found"}',
  'a{b="\xff"} 1',
  '# HELP a \xc3',
];
const formats = ['text', 'OpenMetrics'] as const;
const goodIn = { text: [...validTexts, ...inText], OpenMetrics: [...validTexts, ...inOpenMetrics] };

test('keeps each valid line of the text format and of OpenMetrics', () => {
  for (const format of formats) {
    for (const line of goodIn[format])
      expect(validLines(`${line}\n`, format), line).toEqual({ text: `${line}\n`, dropped: 0, hasEnded: false });
  }
});

test('drops invalid lines and keeps valid ones', () => {
  for (const format of formats) {
    for (const line of invalidTexts) {
      const result = validLines(`a 1\n${line}\nb 2\n`, format);
      expect(result, line).toEqual({ text: 'a 1\nb 2\n', dropped: 1, hasEnded: false });
    }
  }
});

test('omits empty lines and lines after the end of the body', () => {
  const expected = { text: 'a 1\nb 2\n', dropped: 0, hasEnded: true };
  expect(validLines('a 1\n\n\r\nb 2\n# EOF\nc 3\n', 'text')).toEqual(expected);
});

test.each([
  ['a{b="c"}\t 1  ', 'a{b="c"} 1\n'],
  ['a { b = "c" , "d e" = " , " }  -.5e-3', 'a{b="c","d e"=" , "} -.5e-3\n'],
  ['a 1 1520879607700', 'a 1 1520879607.7\n'],
  ['a 1 # {t="x"} 2', 'a 1\n'],
  ['a 1\r', 'a 1\n'],
  ['# a comment', ''],
  ['#', ''],
  ['# HELP a', ''],
  ['# UNIT foo seconds', ''],
  ['# TYPE a untyped', ''],
  ['#  TYPE\ta  counter ', '# TYPE a counter\n'],
])('converts the text format line %j to OpenMetrics', (line, text) => {
  expect(validLines(`${line}\n`, 'OpenMetrics', 'text')).toEqual({ text, dropped: 0, hasEnded: false });
});

test.each([
  ['text', 'a 1 # {t="x"} 2', 'a 1\n'],
  ['text', 'a 1 7\r', 'a 1 7\n'],
  ['text', '# TYPE a  gauge\r', '# TYPE a gauge\n'],
  ['text', '# TYPE a info', ''],
  ['text', '# HELP', ''],
  ['OpenMetrics', 'a{ b="c" } 1 2 #  { t = " x " }  3\t4 ', 'a{b="c"} 1 2 # {t=" x "} 3 4\n'],
] as const)('rewrites a line to valid %s format: %j', (format, line, text) => {
  expect(validLines(`${line}\n`, format)).toEqual({ text, dropped: 0, hasEnded: false });
});

test('processes any line of 64 KiB in less than 50 ms', () => {
  const length = 64 * 1024;
  const lines = [
    ...['a', ' ', '{', '"', '\\', '}', 'a="b",', '{"', '} ', '1', '\t', ',', '#', '{a="', '""', '1e', 'a{} '],
    ...['{a="b",', '{"a"="', '{ ', '"\\"'],
  ].flatMap((fragment) => [
    fragment.repeat(length / fragment.length),
    `a{${fragment.repeat(length / fragment.length)}`,
  ]);
  // Lines with a long number in each position that contains one.
  const digits = '1'.repeat(length / 2);
  for (const prefix of ['a ', 'a 1 ', 'a 1 # {} ', `a 1 # {} ${digits} `, 'a 1.', 'a 1e', 'a 1 1 # {} 1.']) {
    lines.push(`${prefix}${digits}`, `${prefix}${digits}x`, `${prefix}${digits}.${digits}x`);
  }
  for (const line of lines) {
    const { user } = process.cpuUsage();
    for (const to of formats) validLines(`${line}!\n`, to, 'text');
    expect((process.cpuUsage().user - user) / 1_000, line.slice(0, 20)).toBeLessThan(50);
  }
});

test('returns the same string if all lines are valid (agent §6.4)', () => {
  const lines = '# HELP a b\n# TYPE a counter\na{l="x\\"}\\n",m="y"} 1 1700000000\nb 31\nc{} +Inf\n';
  expect(validLines(lines, 'text')).toEqual({ text: lines, dropped: 0, hasEnded: false });
});

test('keeps the same lines whether a text is filtered at once or line by line (agent §6.4)', () => {
  const fragment = fc.constantFrom(
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
    fc.property(fc.array(fragment, { maxLength: 30 }), (fragments) => {
      const text = fragments.join('');
      for (const [to, from] of [
        ['text', 'text'],
        ['OpenMetrics', 'OpenMetrics'],
        ['OpenMetrics', 'text'],
      ] as const) {
        let keptText = '';
        let droppedCount = 0;
        let hasEnded = false;
        for (const line of text.split('\n')) {
          const one = validLines(line === '' ? '' : `${line}\n`, to, from);
          if (!hasEnded) [keptText, droppedCount] = [keptText + one.text, droppedCount + one.dropped];
          hasEnded ||= one.hasEnded;
        }
        expect(validLines(text, to, from)).toEqual({ text: keptText, dropped: droppedCount, hasEnded });
        expect(validLines(keptText, to)).toEqual({ text: keptText, dropped: 0, hasEnded: false });
      }
    }),
    { numRuns: 2_000 },
  );
});
