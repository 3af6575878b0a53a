import { expect, test } from 'vitest';
import { textWidth } from '../../src/debugger/statechart/text-width.ts';
import { cpuMs } from '../../test/harness/cpu-time.ts';
import {
  firstBodyRow,
  labelAt,
  labelBesideLoop,
  layoutOf,
  maxBodyRows,
  noteCentreX,
  widthFor,
} from './sequence-layout.ts';
import { columnWidthFor, nameLines } from './sequence-name.ts';

test.each([
  ['agent', 78, ['agent']],
  ['supervisor', 78, ['supervisor']],
  ['config-controller', 78, ['config-', 'controller']],
  ['ads-connection-N (512)', 78, ['ads-', 'connect…N (512)']],
])('the name %s in %d pixels has the lines %j', (name, width, lines) => {
  const shortenedLines = nameLines(name, width);
  expect(shortenedLines.length).toBe(lines.length);
  expect(shortenedLines.every((line) => textWidth(line, { size: 11, bold: true }) <= width)).toBe(true);
  if (!name.includes('(')) expect(shortenedLines).toEqual(lines);
});

test('a name that is too long for its box is shortened in the middle', () => {
  const [first, last = first] = nameLines('an-exceedingly-long-name-of-an-actor-17', 78);
  expect(first!.startsWith('an-')).toBe(true);
  expect(last!.endsWith('17')).toBe(true);
  expect(`${first}${last}`).toContain('…');
});

test('a name of a million characters is not measured as a whole', () => {
  const longName = `an-${'exceedingly-long-'.repeat(60_000)}name-17`;
  expect(cpuMs(() => nameLines(longName, 78))).toBeLessThan(200);
  expect(nameLines(longName, 78).at(-1)!.endsWith('17')).toBe(true);
  expect(cpuMs(() => columnWidthFor([longName]))).toBeLessThan(200);
});

test('the width of a diagram grows with the number of lifelines', () => {
  expect(widthFor(10) - widthFor(4)).toBe(600);
});

test('labels and notes stay between the record numbers and the right edge', () => {
  const layout = layoutOf(4, 600);
  expect(labelAt(580, 200, layout).left).toBe(layout.width - 206);
  expect(labelAt(300, 100, layout).left).toBe(300);
  const { left, maxWidth } = labelAt(300, 5_000, layout);
  expect(left + maxWidth).toBe(layout.width - 6);
  expect(left).toBeGreaterThan(134);
  const note = 'handing over, nobody asks';
  const halfWidth = textWidth(note, { size: 12 }) / 2;
  expect(noteCentreX(595, note, layout) + halfWidth).toBeLessThan(layout.width);
  expect(noteCentreX(120, note, layout) - halfWidth).toBeGreaterThan(134);
});

test('the label of an arrow to its own lifeline is on the side with more space', () => {
  const layout = layoutOf(4, 600);
  expect(labelBesideLoop(200, 100, layout).left).toBe(230);
  const leftLabel = labelBesideLoop(560, 100, layout);
  expect(leftLabel.left + leftLabel.maxWidth).toBeLessThan(560);
  // Neither side has enough space, so the larger side is used, without covering an arrow.
  const wideLabel = labelBesideLoop(200, 5_000, layout);
  expect([wideLabel.left, wideLabel.left + wideLabel.maxWidth]).toEqual([230, layout.width - 6]);
  expect(labelBesideLoop(500, 5_000, layout).left).toBe(140);
});

test('columns are as wide as names of several programs need, up to a limit', () => {
  expect(columnWidthFor(['agent', 'supervisor'])).toBe(84);
  const width = columnWidthFor(['agent', 'gateway:restart-status']);
  expect(nameLines('gateway:restart-status', width - 12).join('')).toBe('gateway:restart-status');
  expect(columnWidthFor(['an-exceedingly-long-name-of-an-actor-17-of-many-others'])).toBe(132);
});

test('the page contains only the rows around the current position if a browser cannot lay out all of them', () => {
  const rows = 3 * maxBodyRows;
  expect(firstBodyRow(maxBodyRows, maxBodyRows - 1, 0)).toBe(0);
  expect(firstBodyRow(rows, 10, 0)).toBe(0);
  const middle = firstBodyRow(rows, 1.5 * maxBodyRows, 0);
  expect(middle).toBe(maxBodyRows);
  // The first row stays for another row of the same part, and without a current row.
  expect(firstBodyRow(rows, 2 * maxBodyRows - 1, middle)).toBe(middle);
  expect(firstBodyRow(rows, -1, middle)).toBe(middle);
  expect(firstBodyRow(rows, rows - 1, middle)).toBe(2 * maxBodyRows);
  // A filter leaves few rows.
  expect(firstBodyRow(5, 3, middle)).toBe(0);
});
