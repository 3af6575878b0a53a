/** Names of lifelines in their boxes: broken where names are put together, shortened in the middle where that is not enough. */
import { type Font, textWidth } from '../../src/debugger/statechart/text-width.ts';

const font: Font = { size: 11, bold: true };
const mostLines = 2;
/** More of a name has no room in any box: what is longer is not measured. */
const maxChars = 120;

/** The lines of a name in a box of some pixels. Both of its ends are always there. */
export function nameLines(whole: string, width: number): string[] {
  const name = shortened(whole, maxChars);
  for (let kept = name.length; kept > 2; kept--) {
    const lines = linesOf(shortened(name, kept), width);
    if (lines !== undefined) return lines;
  }
  return [name];
}

/** A box of a name is as narrow as its column, or as wide as this at most for the sake of the name. */
const widths = { least: 84, most: 132, step: 8 };
/** Of its border and the room within it. */
export const aroundName = 12;

/** How wide columns are to be so that none of some names is shortened, unless that is too much. */
export function columnFor(names: Iterable<string>): number {
  let { least: width } = widths;
  for (const whole of names) {
    const name = shortened(whole, maxChars);
    while (width < widths.most && linesOf(name, width - aroundName) === undefined) width += widths.step;
  }
  return width;
}

/** As few lines as there may be; undefined when they are too many, or one of them is too long. */
function linesOf(name: string, width: number): string[] | undefined {
  const parts = name.match(/[^-/: ]*[-/: …]?/g)!.filter((part) => part !== '');
  const lines: string[] = [];
  for (const part of parts) {
    const longer = (lines.at(-1) ?? '') + part;
    if (lines.length > 0 && textWidth(longer, font) <= width) lines[lines.length - 1] = longer;
    else lines.push(part);
  }
  return lines.length <= mostLines && lines.every((line) => textWidth(line, font) <= width) ? lines : undefined;
}

function shortened(name: string, kept: number): string {
  if (kept >= name.length) return name;
  const before = Math.ceil(kept / 2);
  return `${name.slice(0, before)}…${name.slice(name.length - (kept - before))}`;
}
