/**
 * Lines of Prometheus' text format and of OpenMetrics: what a scraper would refuse is found line by line, for it refuses all of an answer
 * for one. What is good in one format may be refused in the other.
 */
import { isUtf8 } from 'node:buffer';

export type Exposition = 'text' | 'OpenMetrics';

const name = '[a-zA-Z_:][a-zA-Z0-9_:]*';
const labelName = '[a-zA-Z_][a-zA-Z0-9_]*';
const quoted = '"[^"\\\\\\n]*(?:\\\\.[^"\\\\\\n]*)*"';
/** Digits can be read in one way alone: a line of them that is none costs no more than its length. */
const number = '[+-]?(?:[iI]nf(?:inity)?|[nN]a[nN]|(?:\\d+(?:\\.\\d*)?|\\.\\d+)(?:[eE][+-]?\\d+)?)';

/** @param blanks that may be between any two words of them */
function labelsWith(blanks: string, beginning = ''): string {
  const label = `(?:${labelName}|${quoted})${blanks}=${blanks}${quoted}`;
  return `\\{${blanks}${beginning}(?:${label}${blanks}(?:,${blanks}|(?=\\})))*\\}`;
}

/** A metric with its labels; a name in quotation marks stands among them. */
function seriesWith(blanks: string): string {
  return `(?:${name}(?:${blanks}${labelsWith(blanks)})?|${labelsWith(blanks, `${quoted}${blanks}(?:,${blanks}|(?=\\}))`)})`;
}

/** Each from where a line begins to behind its end: no line is cut out of the text to be looked at. */
const wholeLine = (content: string, end = '(?:\\n|$)'): RegExp => new RegExp(`(?:${content})${end}`, 'y');
const anyBlanks = '[ \\t]*';
/** @param blanks within its labels, and before them */
function exemplarWith(blanks: { readonly within: string; readonly before: string; readonly between: string }): string {
  const { within, before, between } = blanks;
  return `${between}#${before}${labelsWith(within)}${between}${number}(?:${between}${number})?`;
}
const textTypes = 'counter|gauge|histogram|summary|untyped';
const openTypes = 'counter|gauge|histogram|summary|unknown|info|stateset|gaugehistogram';

interface Grammar {
  /** A line without a time, which the two formats have in other units, and without an exemplar. */
  readonly bare: RegExp;
  readonly sample: RegExp;
  readonly type: RegExp;
  readonly help: RegExp;
}

const grammars: Readonly<Record<Exposition, Grammar>> = {
  text: {
    bare: wholeLine(`${seriesWith(anyBlanks)}[ \\t]+${number}${anyBlanks}`),
    sample: wholeLine(`${seriesWith(anyBlanks)}[ \\t]+${number}(?:[ \\t]+-?\\d+)?${anyBlanks}`),
    type: wholeLine(`#[ \\t]+TYPE[ \\t]+(?:${name}|${quoted})[ \\t](?:${textTypes})`),
    help: wholeLine(`#[ \\t]+HELP[ \\t]+(?:${name}|${quoted})(?:[ \\t][^\\n]*)?`),
  },
  OpenMetrics: {
    bare: wholeLine(`${seriesWith('')} ${number}`),
    sample: wholeLine(
      `${seriesWith('')} ${number}(?: ${number})?(?:${exemplarWith({ within: '', before: ' ', between: ' ' })})?`,
    ),
    type: wholeLine(`# TYPE (?:${name}|${quoted}) (?:${openTypes})`),
    help: wholeLine(`# HELP (?:${name}|${quoted}) [^\\n]*`),
  },
};

/** What can be written as either format has it. */
const anyExemplar = exemplarWith({ within: anyBlanks, before: anyBlanks, between: '[ \\t]+' });
const anySample = wholeLine(
  `(${seriesWith(anyBlanks)})[ \\t]+(${number})(?:[ \\t]+(${number}))?(${anyExemplar})?${anyBlanks}\\r?`,
);
const anyType = wholeLine(`#[ \\t]+TYPE[ \\t]+(${name}|${quoted})[ \\t]+(${textTypes}|${openTypes})${anyBlanks}\\r?`);
const unit = wholeLine(`# UNIT (${name}) (${name})`);
/** The only comments that say something which may be wrong. */
const metadata = /#[ \t]+(?:(TYPE)|(HELP)|UNIT)\b/y;
/** The end of an OpenMetrics body. */
const endOfBody = wholeLine(`# EOF${anyBlanks}\\r?`);
const empty = /\r?(?:\n|$)/y;

export interface KeptLines {
  readonly text: string;
  /** Lines that are no exposition. */
  readonly dropped: number;
  /** Nothing of what comes after is a metric. */
  readonly isOver: boolean;
}

/** What becomes of a line: it stays as it is, is written anew (an empty text leaves it out), or is dropped as no exposition (`undefined`). */
type Verdict = 'as it is' | { readonly text: string } | undefined;

const nothing = { text: '' };

/**
 * @param lines whole ones, each byte a character
 * @param to what they are to be
 * @param from what they are
 * @returns those that a scraper takes; empty ones, the end of the body and what the other format has no word for are left out. The very
 *   same text where that is all of them
 */
export function keptLines(lines: string, to: Exposition, from: Exposition = to): KeptLines {
  const kept: string[] = [];
  const mayBeBroken = isBroken(lines);
  let dropped = 0;
  // What was looked at since then is good.
  let good = 0;
  let at = 0;
  let isOver = false;
  while (at < lines.length && !isOver) {
    const newline = lines.indexOf('\n', at);
    const next = newline < 0 ? lines.length : newline + 1;
    isOver = isAt(endOfBody, lines, at);
    const isNothing = isOver || isAt(empty, lines, at);
    const isLost = !isNothing && mayBeBroken && isBroken(lines.slice(at, next));
    const verdict = isNothing ? nothing : isLost ? undefined : verdictOf(lines, at, { to, from });
    if (verdict !== 'as it is') {
      if (at > good) kept.push(lines.slice(good, at));
      if (verdict === undefined) dropped++;
      else if (verdict.text !== '') kept.push(verdict.text);
      good = next;
    }
    at = next;
  }
  if (good < at) kept.push(good === 0 ? lines : lines.slice(good, at));
  const text = kept.length === 1 ? kept[0]! : kept.join('');
  return { text: text === '' || text.endsWith('\n') ? text : `${text}\n`, dropped, isOver };
}

/** Whether it is no UTF-8, which both formats are. */
function isBroken(lines: string): boolean {
  return /[\x80-\xff]/.test(lines) && !isUtf8(Buffer.from(lines, 'latin1'));
}

function verdictOf(lines: string, at: number, { to, from }: { to: Exposition; from: Exposition }): Verdict {
  if (lines[at] === '#') return commentOf(lines, at, to);
  const { bare, sample } = grammars[to];
  if (isAt(to === from ? sample : bare, lines, at)) return 'as it is';
  anySample.lastIndex = at;
  const [, series, value, time, exemplar] = anySample.exec(lines) ?? [];
  if (series === undefined) return undefined;
  const rest = to === from ? timeOf(time) + exemplarOf(exemplar, to) : timeOf(time && `${Number(time) / 1_000}`);
  const written = `${withoutBlanks(series)} ${value}${rest}\n`;
  return isAt(sample, written, 0) ? { text: written } : undefined;
}

/** Text has comments that say nothing, OpenMetrics has none; each has types that the other does not know. */
function commentOf(lines: string, at: number, to: Exposition): Verdict {
  metadata.lastIndex = at;
  const [found, isType, isHelp] = metadata.exec(lines) ?? [];
  const { type, help } = grammars[to];
  if (isType !== undefined) return isAt(type, lines, at) ? 'as it is' : otherType(lines, at, type);
  if (isHelp !== undefined) return isAt(help, lines, at) ? 'as it is' : nothing;
  if (to === 'text') return 'as it is';
  if (found === undefined) return nothing;
  unit.lastIndex = at;
  const [, metric = '', word = ''] = unit.exec(lines) ?? [];
  return word !== '' && metric.endsWith(`_${word}`) ? 'as it is' : nothing;
}

function otherType(lines: string, at: number, type: RegExp): Verdict {
  anyType.lastIndex = at;
  const [, metric, word] = anyType.exec(lines) ?? [];
  if (metric === undefined) return undefined;
  const written = `# TYPE ${metric} ${word}\n`;
  return isAt(type, written, 0) ? { text: written } : nothing;
}

/** Text has milliseconds, OpenMetrics seconds. */
function timeOf(time: string | undefined): string {
  return time === undefined ? '' : ` ${time}`;
}

/** Text has none. */
function exemplarOf(exemplar: string | undefined, to: Exposition): string {
  if (exemplar === undefined || to === 'text') return '';
  const [, labels = '', rest = ''] = /^[ \t]+#[ \t]*(\{.*\})(.*)$/s.exec(exemplar) ?? [];
  return ` # ${withoutBlanks(labels)}${rest.replace(/[ \t]+/g, ' ')}`;
}

/** But for those in quotation marks. */
function withoutBlanks(series: string): string {
  return series.replace(/("[^"\\]*(?:\\.[^"\\]*)*")|[ \t]+/g, '$1');
}

function isAt(expression: RegExp, text: string, at: number): boolean {
  expression.lastIndex = at;
  return expression.test(text);
}
