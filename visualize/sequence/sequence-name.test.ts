import { expect, test } from 'vitest';
import { textWidth } from '../../src/debugger/statechart/text-width.ts';
import { layoutOf, noteMiddle, widthFor, wordsAt } from './sequence-layout.ts';
import { nameLines } from './sequence-name.ts';

test.each([
  ['agent', 78, ['agent']],
  ['supervisor', 78, ['supervisor']],
  ['config-controller', 78, ['config-', 'controller']],
  ['ads-connection-N (512)', 78, ['ads-', 'connect…N (512)']],
])('%s in %d pixels is %j', (name, width, lines) => {
  const found = nameLines(name, width);
  expect(found.length).toBe(lines.length);
  expect(found.every((line) => textWidth(line, { size: 11, bold: true }) <= width)).toBe(true);
  if (!name.includes('(')) expect(found).toEqual(lines);
});

test('a name that is too long for its box loses its middle, never its ends', () => {
  const [first, last = first] = nameLines('an-exceedingly-long-name-of-an-actor-17', 78);
  expect(first!.startsWith('an-')).toBe(true);
  expect(last!.endsWith('17')).toBe(true);
  expect(`${first}${last}`).toContain('…');
});

test('the width that is asked for grows with the lifelines', () => {
  expect(widthFor(10) - widthFor(4)).toBe(600);
});

test('words and notes stay between the numbers and the right edge', () => {
  const layout = layoutOf(4, 600);
  expect(wordsAt(580, 200, layout).left).toBe(layout.width - 206);
  expect(wordsAt(300, 100, layout).left).toBe(300);
  const { left, most } = wordsAt(300, 5_000, layout);
  expect(left + most).toBe(layout.width - 6);
  expect(left).toBeGreaterThan(134);
  const note = 'handing over, nobody asks';
  const half = textWidth(note, { size: 12 }) / 2;
  expect(noteMiddle(595, note, layout) + half).toBeLessThan(layout.width);
  expect(noteMiddle(120, note, layout) - half).toBeGreaterThan(134);
});
