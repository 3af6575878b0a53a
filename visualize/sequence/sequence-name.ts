/** Names are broken between path segments, and shortened in the middle if they still do not fit. */
import { type Font, textWidth } from '../../src/debugger/statechart/text-width.ts';

const font: Font = { size: 11, bold: true };
const maxLines = 2;
const maxChars = 120;

/** The start and the end of the name are always included. */
export function nameLines(fullName: string, width: number): string[] {
  const name = shortenName(fullName, maxChars);
  for (let shownChars = name.length; shownChars > 2; shownChars--) {
    const lines = linesOf(shortenName(name, shownChars), width);
    if (lines !== undefined) return lines;
  }
  return [name];
}

const widths = { least: 84, most: 132, step: 8 };
export const namePadding = 12;

/** No name is shortened at this width, up to a maximum. */
export function columnWidthFor(names: Iterable<string>): number {
  let { least: width } = widths;
  for (const fullName of names) {
    const name = shortenName(fullName, maxChars);
    while (width < widths.most && linesOf(name, width - namePadding) === undefined) width += widths.step;
  }
  return width;
}

/** `undefined` if the name needs too many lines, or a line is too long. */
function linesOf(name: string, width: number): string[] | undefined {
  const segments = name.match(/[^-/: ]*[-/: …]?/g)!.filter((part) => part !== '');
  const lines: string[] = [];
  for (const segment of segments) {
    const longerLine = (lines.at(-1) ?? '') + segment;
    if (lines.length > 0 && textWidth(longerLine, font) <= width) lines[lines.length - 1] = longerLine;
    else lines.push(segment);
  }
  return lines.length <= maxLines && lines.every((line) => textWidth(line, font) <= width) ? lines : undefined;
}

function shortenName(name: string, shownChars: number): string {
  if (shownChars >= name.length) return name;
  const startLength = Math.ceil(shownChars / 2);
  return `${name.slice(0, startLength)}…${name.slice(name.length - (shownChars - startLength))}`;
}
