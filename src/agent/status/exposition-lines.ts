/** Lines of Prometheus' text format and of OpenMetrics: what a scraper would refuse is found line by line. */

const name = '[a-zA-Z_:][a-zA-Z0-9_:]*';
const quoted = '"[^"\\\\\\n]*(?:\\\\.[^"\\\\\\n]*)*"';
const label = `(?:(?:${name}|${quoted})[ \\t]*=[ \\t]*)?${quoted}`;
const labels = `\\{[ \\t]*(?:${label}[ \\t]*(?:,[ \\t]*|(?=\\})))*\\}`;
/** Digits can be read in one way alone: a line of them that is none costs no more than its length. */
const number = '[+-]?(?:[iI]nf(?:inity)?|[nN]a[nN]|(?:\\d+(?:\\.\\d*)?|\\.\\d+)(?:[eE][+-]?\\d+)?|0[xX][0-9a-fA-F]+)';
const exemplar = `(?:[ \\t]+#[ \\t]*${labels}[ \\t]+${number}(?:[ \\t]+${number})?)`;
const types = 'counter|gauge|histogram|summary|untyped|unknown|info|stateset|gaugehistogram';
/** Each from where a line begins to behind its end: no line is cut out of the text to be looked at. */
const wholeLine = (content: string): RegExp => new RegExp(`(?:${content})[ \\t]*\\r?(?:\\n|$)`, 'y');
const sample = wholeLine(`(?:${name}(?:[ \\t]*${labels})?|${labels})[ \\t]+${number}(?:[ \\t]+${number})?${exemplar}?`);
/** Of comments the type alone says something that may be wrong. */
const typed = wholeLine(`#[ \\t]+TYPE[ \\t]+(?:${name}|${quoted})[ \\t]+(?:${types})`);
const startOfType = /#[ \t]+TYPE\b/y;
/** The end of an OpenMetrics body. */
const endOfBody = wholeLine('# EOF');
const empty = /\r?(?:\n|$)/y;

export interface KeptLines {
  readonly text: string;
  /** Lines that are no exposition. */
  readonly dropped: number;
  /** Nothing of what comes after is a metric. */
  readonly isOver: boolean;
}

/**
 * @param lines whole ones, each byte a character
 * @returns those that a scraper takes; empty ones and the end of the body are left out, for OpenMetrics has none within. The very
 *   same text where that is all of them
 */
export function keptLines(lines: string): KeptLines {
  const kept: string[] = [];
  let dropped = 0;
  // What was looked at since then is good.
  let from = 0;
  let at = 0;
  let isOver = false;
  while (at < lines.length && !isOver) {
    const newline = lines.indexOf('\n', at);
    const next = newline < 0 ? lines.length : newline + 1;
    isOver = isAt(endOfBody, lines, at);
    const isEmpty = !isOver && isAt(empty, lines, at);
    if (isOver || isEmpty || !isGood(lines, at)) {
      if (at > from) kept.push(lines.slice(from, at));
      if (!isOver && !isEmpty) dropped++;
      from = next;
    }
    at = next;
  }
  if (from < at) kept.push(from === 0 ? lines : lines.slice(from, at));
  const text = kept.length === 1 ? kept[0]! : kept.join('');
  return { text: text === '' || text.endsWith('\n') ? text : `${text}\n`, dropped, isOver };
}

function isGood(lines: string, at: number): boolean {
  if (lines[at] !== '#') return isAt(sample, lines, at);
  return !isAt(startOfType, lines, at) || isAt(typed, lines, at);
}

function isAt(expression: RegExp, text: string, at: number): boolean {
  expression.lastIndex = at;
  return expression.test(text);
}
