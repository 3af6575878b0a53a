/** Lines of Prometheus' text format and of OpenMetrics: what a scraper would refuse is found line by line. */

const name = '[a-zA-Z_:][a-zA-Z0-9_:]*';
const quoted = '"[^"\\\\]*(?:\\\\.[^"\\\\]*)*"';
const label = `(?:(?:${name}|${quoted})[ \\t]*=[ \\t]*)?${quoted}`;
const labels = `\\{[ \\t]*(?:${label}[ \\t]*(?:,[ \\t]*|(?=\\})))*\\}`;
const number = '[+-]?(?:[iI]nf(?:inity)?|[nN]a[nN]|(?:\\d+\\.?\\d*|\\.\\d+)(?:[eE][+-]?\\d+)?|0[xX][0-9a-fA-F]+)';
const exemplar = `(?:[ \\t]+#[ \\t]*${labels}[ \\t]+${number}(?:[ \\t]+${number})?)`;
const sample = new RegExp(
  `^(?:${name}(?:[ \\t]*${labels})?|${labels})[ \\t]+${number}(?:[ \\t]+${number})?${exemplar}?[ \\t]*\\r?$`,
);
const types = 'counter|gauge|histogram|summary|untyped|unknown|info|stateset|gaugehistogram';
/** Of comments the type alone says something that may be wrong. */
const typed = new RegExp(`^#[ \\t]+TYPE[ \\t]+(?:${name}|${quoted})[ \\t]+(?:${types})[ \\t]*\\r?$`);

/** The end of an OpenMetrics body. */
const isEnd = (line: string): boolean => /^# EOF[ \t]*\r?$/.test(line);

export interface KeptLines {
  readonly text: string;
  /** Lines that are no exposition. */
  readonly dropped: number;
  /** Nothing of what comes after is a metric. */
  readonly isOver: boolean;
}

/**
 * @param lines whole ones, each byte a character
 * @returns those that a scraper takes; empty ones and the end of the body are left out, for OpenMetrics has none within
 */
export function keptLines(lines: string): KeptLines {
  const kept: string[] = [];
  let dropped = 0;
  for (const line of lines.split('\n')) {
    if (isEnd(line)) return { text: joined(kept), dropped, isOver: true };
    if (line === '' || line === '\r') continue;
    const isGood = line.startsWith('#') ? !/^#[ \t]+TYPE\b/.test(line) || typed.test(line) : sample.test(line);
    if (isGood) kept.push(line);
    else dropped++;
  }
  return { text: joined(kept), dropped, isOver: false };
}

function joined(lines: readonly string[]): string {
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`;
}
