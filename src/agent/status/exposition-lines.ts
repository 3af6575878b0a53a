/** A scraper rejects a whole response with one invalid line, so invalid lines are removed. */
import { isUtf8 } from 'node:buffer';

export type ExpositionFormat = 'text' | 'OpenMetrics';

const name = '[a-zA-Z_:][a-zA-Z0-9_:]*';
const labelName = '[a-zA-Z_][a-zA-Z0-9_]*';
const quotedPattern = '"[^"\\\\\\n]*(?:\\\\.[^"\\\\\\n]*)*"';
/** An unambiguous pattern: matching takes linear time, also for long invalid lines of digits. */
const number = '[+-]?(?:[iI]nf(?:inity)?|[nN]a[nN]|(?:\\d+(?:\\.\\d*)?|\\.\\d+)(?:[eE][+-]?\\d+)?)';

function labelsWith(blanks: string, beginning = ''): string {
  const label = `(?:${labelName}|${quotedPattern})${blanks}=${blanks}${quotedPattern}`;
  return `\\{${blanks}${beginning}(?:${label}${blanks}(?:,${blanks}|(?=\\})))*\\}`;
}

/** A quoted metric name is inside the braces. */
function seriesWith(blanks: string): string {
  return `(?:${name}(?:${blanks}${labelsWith(blanks)})?|${labelsWith(blanks, `${quotedPattern}${blanks}(?:,${blanks}|(?=\\}))`)})`;
}

/** Sticky patterns match lines without copying them. */
const linePattern = (content: string, end = '(?:\\n|$)'): RegExp => new RegExp(`(?:${content})${end}`, 'y');
const anyBlanks = '[ \\t]*';
/** @param blanks white space patterns for the labels, before them, and between the other tokens */
function exemplarWith(blanks: {
  readonly within: string;
  readonly beforeLabels: string;
  readonly between: string;
}): string {
  const { within, beforeLabels, between } = blanks;
  return `${between}#${beforeLabels}${labelsWith(within)}${between}${number}(?:${between}${number})?`;
}
const textTypes = 'counter|gauge|histogram|summary|untyped';
const openMetricsTypes = 'counter|gauge|histogram|summary|unknown|info|stateset|gaugehistogram';

interface LineGrammar {
  /** The pattern excludes the timestamp, whose unit differs between the formats, and the exemplar. */
  readonly bare: RegExp;
  readonly sample: RegExp;
  readonly type: RegExp;
  readonly help: RegExp;
}

const grammars: Readonly<Record<ExpositionFormat, LineGrammar>> = {
  text: {
    bare: linePattern(`${seriesWith(anyBlanks)}[ \\t]+${number}${anyBlanks}`),
    sample: linePattern(`${seriesWith(anyBlanks)}[ \\t]+${number}(?:[ \\t]+-?\\d+)?${anyBlanks}`),
    type: linePattern(`#[ \\t]+TYPE[ \\t]+(?:${name}|${quotedPattern})[ \\t](?:${textTypes})`),
    help: linePattern(`#[ \\t]+HELP[ \\t]+(?:${name}|${quotedPattern})(?:[ \\t][^\\n]*)?`),
  },
  OpenMetrics: {
    bare: linePattern(`${seriesWith('')} ${number}`),
    sample: linePattern(
      `${seriesWith('')} ${number}(?: ${number})?(?:${exemplarWith({ within: '', beforeLabels: ' ', between: ' ' })})?`,
    ),
    type: linePattern(`# TYPE (?:${name}|${quotedPattern}) (?:${openMetricsTypes})`),
    help: linePattern(`# HELP (?:${name}|${quotedPattern}) [^\\n]*`),
  },
};

/** These lines can be converted to a valid line of either format. */
const anyExemplar = exemplarWith({ within: anyBlanks, beforeLabels: anyBlanks, between: '[ \\t]+' });
const anySample = linePattern(
  `(${seriesWith(anyBlanks)})[ \\t]+(${number})(?:[ \\t]+(${number}))?(${anyExemplar})?${anyBlanks}\\r?`,
);
const anyType = linePattern(
  `#[ \\t]+TYPE[ \\t]+(${name}|${quotedPattern})[ \\t]+(${textTypes}|${openMetricsTypes})${anyBlanks}\\r?`,
);
const unitLine = linePattern(`# UNIT (${name}) (${name})`);
/** Other comments cannot be invalid. */
const metadata = /#[ \t]+(?:(TYPE)|(HELP)|UNIT)\b/y;
const endOfBody = linePattern(`# EOF${anyBlanks}\\r?`);
const emptyLine = /\r?(?:\n|$)/y;

export interface ValidLines {
  readonly text: string;
  readonly dropped: number;
  /** Lines after the end of the body are not metrics. */
  readonly hasEnded: boolean;
}

/** An empty text omits the line; `undefined` marks an invalid line. */
type LineResult = 'as it is' | { readonly text: string } | undefined;

const omittedLine = { text: '' };

/** @param lines complete lines, with one character per byte */
export function validLines(lines: string, to: ExpositionFormat, from: ExpositionFormat = to): ValidLines {
  const outputLines: string[] = [];
  const mayHaveInvalidUtf8 = hasInvalidUtf8(lines);
  let droppedCount = 0;
  // Unchanged lines are copied together; this is the start of those that were not copied yet.
  let unchangedOffset = 0;
  let offset = 0;
  let hasEnded = false;
  while (offset < lines.length && !hasEnded) {
    const newline = lines.indexOf('\n', offset);
    const nextOffset = newline < 0 ? lines.length : newline + 1;
    hasEnded = matchesAt(endOfBody, lines, offset);
    const isOmittedLine = hasEnded || matchesAt(emptyLine, lines, offset);
    const isInvalidLine = !isOmittedLine && mayHaveInvalidUtf8 && hasInvalidUtf8(lines.slice(offset, nextOffset));
    const result = isOmittedLine ? omittedLine : isInvalidLine ? undefined : checkLine(lines, offset, { to, from });
    if (result !== 'as it is') {
      if (offset > unchangedOffset) outputLines.push(lines.slice(unchangedOffset, offset));
      if (result === undefined) droppedCount++;
      else if (result.text !== '') outputLines.push(result.text);
      unchangedOffset = nextOffset;
    }
    offset = nextOffset;
  }
  if (unchangedOffset < offset) outputLines.push(unchangedOffset === 0 ? lines : lines.slice(unchangedOffset, offset));
  const text = outputLines.length === 1 ? outputLines[0]! : outputLines.join('');
  return { text: text === '' || text.endsWith('\n') ? text : `${text}\n`, dropped: droppedCount, hasEnded };
}

function hasInvalidUtf8(lines: string): boolean {
  return /[\x80-\xff]/.test(lines) && !isUtf8(Buffer.from(lines, 'latin1'));
}

function checkLine(
  lines: string,
  offset: number,
  { to, from }: { to: ExpositionFormat; from: ExpositionFormat },
): LineResult {
  if (lines[offset] === '#') return checkComment(lines, offset, to);
  const { bare, sample } = grammars[to];
  if (matchesAt(to === from ? sample : bare, lines, offset)) return 'as it is';
  anySample.lastIndex = offset;
  const [, series, value, time, exemplar] = anySample.exec(lines) ?? [];
  if (series === undefined) return undefined;
  const suffix = to === from ? timeOf(time) + exemplarOf(exemplar, to) : timeOf(time && `${Number(time) / 1_000}`);
  const outputLine = `${stripBlanks(series)} ${value}${suffix}\n`;
  return matchesAt(sample, outputLine, 0) ? { text: outputLine } : undefined;
}

/** Text format allows any comment, OpenMetrics none. Each format has types that the other does not know. */
function checkComment(lines: string, offset: number, to: ExpositionFormat): LineResult {
  metadata.lastIndex = offset;
  const [matchedText, isType, isHelp] = metadata.exec(lines) ?? [];
  const { type, help } = grammars[to];
  if (isType !== undefined) return matchesAt(type, lines, offset) ? 'as it is' : convertType(lines, offset, type);
  if (isHelp !== undefined) return matchesAt(help, lines, offset) ? 'as it is' : omittedLine;
  if (to === 'text') return 'as it is';
  if (matchedText === undefined) return omittedLine;
  unitLine.lastIndex = offset;
  const [, metric = '', unitName = ''] = unitLine.exec(lines) ?? [];
  return unitName !== '' && metric.endsWith(`_${unitName}`) ? 'as it is' : omittedLine;
}

function convertType(lines: string, offset: number, type: RegExp): LineResult {
  anyType.lastIndex = offset;
  const [, metric, typeName] = anyType.exec(lines) ?? [];
  if (metric === undefined) return undefined;
  const outputLine = `# TYPE ${metric} ${typeName}\n`;
  return matchesAt(type, outputLine, 0) ? { text: outputLine } : omittedLine;
}

/** Text format has milliseconds, OpenMetrics seconds. */
function timeOf(time: string | undefined): string {
  return time === undefined ? '' : ` ${time}`;
}

function exemplarOf(exemplar: string | undefined, to: ExpositionFormat): string {
  if (exemplar === undefined || to === 'text') return '';
  const [, labels = '', valueAndTime = ''] = /^[ \t]+#[ \t]*(\{.*\})(.*)$/s.exec(exemplar) ?? [];
  return ` # ${stripBlanks(labels)}${valueAndTime.replace(/[ \t]+/g, ' ')}`;
}

function stripBlanks(series: string): string {
  return series.replace(/("[^"\\]*(?:\\.[^"\\]*)*")|[ \t]+/g, '$1');
}

function matchesAt(expression: RegExp, text: string, offset: number): boolean {
  expression.lastIndex = offset;
  return expression.test(text);
}
