/**
 * One YAML document: its value, its mistakes of syntax, and where in the file each field is. YAML is read as version 1.2
 * with its core schema and merge keys: `yes`, `no`, `on` and `off` are texts (where a field wants true or false, its
 * decoder says so), and numbers have no sexagesimals.
 */
import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument, visit } from 'yaml';
import { aliasViolation } from './alias-extent.ts';
import { deepestNesting, type NotPlain, type PlainDocument, readPlainDocument } from './yaml-fast.ts';

export interface Position {
  /** 1-based. */
  readonly line: number;
  /** 1-based. */
  readonly column: number;
}

export interface YamlDocument {
  /** As far as it could be read, when there are mistakes. */
  readonly value: unknown;
  readonly errors: readonly (Position & { readonly message: string })[];
  /** Set if it may be valid, but is longer than what the parser of documents that are not plain accepts. */
  readonly isTooLong?: true;
  /** Where a field is (`spec.http[0].name`), or the deepest part of its path that is there. */
  positionOf(path: string): Position;
}

/** A part of a text, with the line that it begins on. */
export interface TextPart {
  readonly text: string;
  /** 1-based. */
  readonly line: number;
}

/** Cuts a stream at its `---` lines, which can stand nowhere else in YAML (YAML 1.2.2 §9.1.2). */
export function splitDocuments(text: string): readonly TextPart[] {
  return [...documentsOf(text)];
}

/** The same, one after the other. */
export function* documentsOf(text: string): Generator<TextPart, void> {
  let line = 1;
  let start = 0;
  let from = 0;
  for (;;) {
    const marker = nextMarker(text, from);
    const end = marker ?? text.length;
    // Directives and comments before the first marker belong to what follows it.
    if (marker === undefined || !isOnlyComments(text, start, end)) {
      const part = text.slice(start, end);
      yield { text: part, line };
      line += linesIn(part);
      start = end;
    }
    if (marker === undefined) return;
    from = end;
  }
}

/** Offset of the next line, behind a line's end, that is a marker. */
function nextMarker(text: string, from: number): number | undefined {
  for (let at = text.indexOf('\n---', from); at >= 0; at = text.indexOf('\n---', at + 1)) {
    const behind = text.charAt(at + 4);
    if (behind === '' || /\s/.test(behind)) return at + 1;
  }
  return undefined;
}

/** Lines that are blank, comments or directives. */
function isOnlyComments(text: string, start: number, end: number): boolean {
  for (let at = start; at < end; ) {
    const lineEnd = text.indexOf('\n', at);
    const stop = lineEnd < 0 || lineEnd > end ? end : lineEnd;
    const first = text.slice(at, stop).trimStart().charAt(0);
    if (first !== '' && first !== '#' && first !== '%') return false;
    at = stop + 1;
  }
  return true;
}

function linesIn(text: string): number {
  let lines = 0;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) lines++;
  return lines;
}

/**
 * The parser that knows every position and mistake works for a quarter of a second on so many characters. Of more, what is
 * not plain is refused.
 */
const mostExplained = 128 * 1024;

/** Of one document: for each alias that parser goes through all anchors. */
const mostAliases = 1_000;

/** Of one document; those behind the first few mostly follow from them. */
const mostErrors = 50;

/** Reads one document. Never throws. The parser that knows every position is asked only when it is needed. */
export function parseYamlDocument(part: TextPart): YamlDocument {
  const isLong = part.text.length > mostExplained;
  const read = readPlainDocument(part.text, { takesTabs: isLong });
  if (!('why' in read)) return plainYamlDocument(part, read);
  if (read.why === 'too deep') return refusedDocument(part, `nested deeper than ${deepestNesting} levels`, read.offset);
  if (isLong) {
    const refused = refusedDocument(part, whyNotExplained(read), read.why === 'odd' ? 0 : read.offset);
    return read.why === 'odd' ? { ...refused, isTooLong: true } : refused;
  }
  const aliases = read.why === 'odd' ? read.aliases : part.text.match(seemingAlias)?.length;
  if ((aliases ?? 0) > mostAliases) return refusedDocument(part, `more than ${mostAliases} aliases in one document`, 0);
  return explainYamlDocument(part);
}

/** In a document that is no YAML. */
const seemingAlias = /(?<![^\s,[{])\*[^\s,[\]{}]/g;

function whyNotExplained(read: NotPlain): string {
  if (read.why === 'broken') return read.message;
  const what = `a document of more than ${mostExplained} characters must not have ${read.message}`;
  return `${what}; split it into several documents with ---`;
}

/** What is before the mistake may tell which object it was. */
function refusedDocument(part: TextPart, message: string, offset: number): YamlDocument {
  const { text } = part;
  const head = text.slice(0, Math.min(offset === 0 ? text.length : offset, mostExplained));
  const isSafe = (head.match(seemingAlias)?.length ?? 0) <= mostAliases;
  const read = isSafe ? explainYamlDocument({ ...part, text: head }) : undefined;
  const place = new LineStarts(part).positionOf(offset);
  return {
    value: read?.value,
    errors: [{ ...place, message }],
    positionOf: (path) => read?.positionOf(path) ?? place,
  };
}

function plainYamlDocument(part: TextPart, plain: PlainDocument): YamlDocument {
  const lineStarts = new LineStarts(part);
  let explained: YamlDocument | undefined;
  return {
    value: plain.value,
    errors: [],
    positionOf: (path) => {
      const keys = pathKeys(path);
      for (let length = keys.length; length >= 0; length--) {
        const offset = plain.offsetOf(keys.slice(0, length));
        if (offset !== undefined) return lineStarts.positionOf(offset);
        if (part.text.length > mostExplained) continue;
        explained ??= explainYamlDocument(part);
        return explained.positionOf(path);
      }
      return lineStarts.positionOf(0);
    },
  };
}

/** Where offsets of a text are. */
class LineStarts {
  readonly #part: TextPart;
  #starts: readonly number[] | undefined;

  constructor(part: TextPart) {
    this.#part = part;
  }

  positionOf(offset: number): Position {
    this.#starts ??= lineStartsOf(this.#part.text);
    let [low, high] = [0, this.#starts.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#starts[middle]! <= offset) low = middle;
      else high = middle - 1;
    }
    return { line: this.#part.line + low, column: offset - this.#starts[low]! + 1 };
  }
}

function lineStartsOf(text: string): number[] {
  const starts = [0];
  for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', end + 1)) starts.push(end + 1);
  return starts;
}

/** Reads one document with every position and mistake; much slower. Never throws. */
export function explainYamlDocument(part: TextPart): YamlDocument {
  const lineCounter = new LineCounter();
  const at = (offset: number): Position => {
    const { line, col } = lineCounter.linePos(Math.min(offset, part.text.length));
    return { line: part.line + Math.max(line, 1) - 1, column: Math.max(col, 1) };
  };
  const errors: (Position & { message: string })[] = [];
  try {
    // Of each key the library would look at all keys before it.
    const options = { lineCounter, prettyErrors: false, merge: true, logLevel: 'error', uniqueKeys: false } as const;
    const document = parseDocument(part.text, options);
    const circular = circularAliases(document);
    for (const { pos, message } of [...document.errors, ...repeatedKeys(document), ...circular].sort(
      (a, b) => a.pos[0] - b.pos[0],
    )) {
      if (errors.length < mostErrors) errors.push({ ...at(pos[0]), message: explainedMessage(message) });
    }
    const positionOf = (path: string): Position => at(offsetOf(document, path));
    const found = circular.length > 0 ? undefined : aliasedValueOf(document);
    if (found !== undefined && 'value' in found) return { value: found.value, errors, positionOf };
    if (found !== undefined) {
      errors.push({ ...at(firstAlias(document) ?? 0), message: explainedMessage(found.violation) });
    }
    return { value: valueWithoutAliases(document), errors, positionOf };
  } catch (error) {
    const place: Position = { line: part.line, column: 1 };
    const message = explainedMessage(error instanceof Error ? error.message : String(error));
    return { value: undefined, errors: [{ ...place, message }], positionOf: () => place };
  }
}

/** The value, or what is wrong with its aliases. */
function aliasedValueOf(document: Document): { readonly value: unknown } | { readonly violation: string } {
  try {
    // What aliases stand for is one object in all their places, so that this takes no longer than the text is.
    const value: unknown = document.toJS({ maxAliasCount: -1 });
    const violation = firstAlias(document) === undefined ? undefined : aliasViolation(value);
    return violation === undefined ? { value } : { violation };
  } catch (error) {
    // An alias without its anchor, or a value that is too deep.
    return { violation: error instanceof Error ? error.message : String(error) };
  }
}

/** Aliases within the value that they stand for: it would have no end. */
function circularAliases(document: Document): { pos: readonly [number]; message: string }[] {
  const found: { pos: readonly [number]; message: string }[] = [];
  visit(document, {
    Alias: (_, alias, path) => {
      const target = alias.resolve(document);
      if (target === undefined || !path.includes(target)) return;
      const message = `alias *${alias.source} refers to a value that contains it: write the value without an alias`;
      found.push({ pos: [rangeStart(alias) ?? 0], message });
    },
  });
  return found;
}

function firstAlias(document: Document): number | undefined {
  let first: number | undefined;
  visit(document, {
    Alias: (_, alias) => {
      first = rangeStart(alias);
      return visit.BREAK;
    },
  });
  return first;
}

/** Which object a document is may be known although its aliases are wrong. */
function valueWithoutAliases(document: Document): unknown {
  const copy = document.clone();
  visit(copy, {
    Pair: (_, { value }) => (isAlias(value) ? visit.REMOVE : undefined),
    Alias: () => copy.createNode(null),
  });
  return copy.toJS();
}

/** Messages of the library that concern its own calls, in terms of the file. */
function explainedMessage(message: string): string {
  if (message.includes('call stack')) return `nested deeper than ${deepestNesting} levels`;
  return message.startsWith('Source contains multiple documents')
    ? 'another document begins here: write a --- line before it'
    : message;
}

function repeatedKeys(document: Document): { pos: readonly [number]; message: string }[] {
  const repeated: { pos: readonly [number]; message: string }[] = [];
  visit(document, {
    Map: (_, map) => {
      const known = new Set<unknown>();
      for (const { key } of map.items) {
        if (!isScalar(key)) continue;
        if (known.has(key.value)) repeated.push({ pos: [rangeStart(key) ?? 0], message: 'Map keys must be unique' });
        known.add(key.value);
      }
    },
  });
  return repeated;
}

function offsetOf(document: Document, path: string): number {
  let node: unknown = document.contents;
  let offset = rangeStart(node) ?? 0;
  for (const key of pathKeys(path)) {
    if (isAlias(node)) node = node.resolve(document);
    if (isMap(node)) {
      const pair = node.items.find((item) => String(isScalar(item.key) ? item.key.value : item.key) === String(key));
      if (pair === undefined) break;
      offset = rangeStart(pair.key) ?? offset;
      node = pair.value;
    } else if (isSeq(node) && typeof key === 'number' && key < node.items.length) {
      node = node.items[key];
      offset = rangeStart(node) ?? offset;
    } else break;
  }
  return offset;
}

function rangeStart(node: unknown): number | undefined {
  return (node as Node | null | undefined)?.range?.[0];
}

/** `a.b[0]["x.y"]` as `a`, `b`, 0, `x.y`. */
function pathKeys(path: string): (string | number)[] {
  return [...path.matchAll(/\[(\d+)\]|\["((?:[^"\\]|\\.)*)"\]|([\w-]+)/g)].map(([, index, quoted, plain]) => {
    if (index !== undefined) return Number(index);
    return quoted === undefined ? plain! : (JSON.parse(`"${quoted}"`) as string);
  });
}
