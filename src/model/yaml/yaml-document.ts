/** YAML 1.2 with the core schema and merge keys: `yes`, `no`, `on` and `off` are strings, and sexagesimal numbers do not exist. */
import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument, visit } from 'yaml';
import { aliasViolation } from './alias-extent.ts';
import { maxNesting, type PlainDocument, type ReadFailure, readPlainDocument } from './yaml-fast.ts';

export interface YamlPosition {
  readonly line: number;
  readonly column: number;
}

export interface YamlDocument {
  /** Contains only the readable part if there are errors. */
  readonly value: unknown;
  readonly errors: readonly (YamlPosition & { readonly message: string })[];
  /** The document may be valid, but is too long for the full parser. */
  readonly isTooLong?: true;
  /** Position of a field such as `spec.http[0].name`, or of its deepest existing parent. */
  positionOf(path: string): YamlPosition;
}

export interface TextPart {
  readonly text: string;
  /** 1-based. */
  readonly line: number;
}

/** A line `---` has no other meaning in YAML (YAML 1.2.2 §9.1.2). */
export function splitDocuments(text: string): readonly TextPart[] {
  return [...documentsOf(text)];
}

export function* documentsOf(text: string): Generator<TextPart, void> {
  let lineNumber = 1;
  let start = 0;
  let searchStart = 0;
  for (;;) {
    const marker = nextMarker(text, searchStart);
    const documentEnd = marker ?? text.length;
    // Directives and comments before the first marker belong to the following document.
    if (marker === undefined || !isOnlyComments(text, start, documentEnd)) {
      const documentText = text.slice(start, documentEnd);
      yield { text: documentText, line: lineNumber };
      lineNumber += linesIn(documentText);
      start = documentEnd;
    }
    if (marker === undefined) return;
    searchStart = documentEnd;
  }
}

function nextMarker(text: string, searchStart: number): number | undefined {
  for (
    let newlineIndex = text.indexOf('\n---', searchStart);
    newlineIndex >= 0;
    newlineIndex = text.indexOf('\n---', newlineIndex + 1)
  ) {
    const nextCharacter = text.charAt(newlineIndex + 4);
    if (nextCharacter === '' || /\s/.test(nextCharacter)) return newlineIndex + 1;
  }
  return undefined;
}

function isOnlyComments(text: string, start: number, end: number): boolean {
  for (let lineStart = start; lineStart < end; ) {
    const lineEnd = text.indexOf('\n', lineStart);
    const contentEnd = lineEnd < 0 || lineEnd > end ? end : lineEnd;
    const firstCharacter = text.slice(lineStart, contentEnd).trimStart().charAt(0);
    if (firstCharacter !== '' && firstCharacter !== '#' && firstCharacter !== '%') return false;
    lineStart = contentEnd + 1;
  }
  return true;
}

function linesIn(text: string): number {
  let lineCount = 0;
  for (let newlineIndex = text.indexOf('\n'); newlineIndex >= 0; newlineIndex = text.indexOf('\n', newlineIndex + 1))
    lineCount++;
  return lineCount;
}

/** The full parser takes 250 ms for this many characters. Longer documents are rejected unless they are plain. */
const maxExplainedLength = 128 * 1024;

/** Maximum aliases per document, because the full parser scans all anchors for each alias. */
const maxAliases = 1_000;

/** Maximum errors per document; later errors mostly follow from the first. */
const maxErrors = 50;

/** Never throws. Uses the full parser only when needed. */
export function parseYamlDocument(textPart: TextPart): YamlDocument {
  const isTooLongToExplain = textPart.text.length > maxExplainedLength;
  const readResult = readPlainDocument(textPart.text, { acceptsTabs: isTooLongToExplain });
  if (!('reason' in readResult)) return plainYamlDocument(textPart, readResult);
  if (readResult.reason === 'too deep')
    return buildRejectedDocument(textPart, `nested deeper than ${maxNesting} levels`, readResult.offset);
  if (isTooLongToExplain) {
    const rejectedDocument = buildRejectedDocument(
      textPart,
      rejectionReason(readResult),
      readResult.reason === 'odd' ? 0 : readResult.offset,
    );
    return readResult.reason === 'odd' ? { ...rejectedDocument, isTooLong: true } : rejectedDocument;
  }
  const aliases = readResult.reason === 'odd' ? readResult.aliases : textPart.text.match(aliasLikePattern)?.length;
  if ((aliases ?? 0) > maxAliases)
    return buildRejectedDocument(textPart, `more than ${maxAliases} aliases in one document`, 0);
  return explainYamlDocument(textPart);
}

/** Also matches text that looks like an alias in an invalid document. */
const aliasLikePattern = /(?<![^\s,[{])\*[^\s,[\]{}]/g;

function rejectionReason(readResult: ReadFailure): string {
  if (readResult.reason === 'broken') return readResult.message;
  const message = `a document of more than ${maxExplainedLength} characters must not have ${readResult.message}`;
  return `${message}; split it into several documents with ---`;
}

/** Parses the text before the error, because it may identify the object. */
function buildRejectedDocument(textPart: TextPart, message: string, offset: number): YamlDocument {
  const { text } = textPart;
  const leadingText = text.slice(0, Math.min(offset === 0 ? text.length : offset, maxExplainedLength));
  const hasAcceptableAliases = (leadingText.match(aliasLikePattern)?.length ?? 0) <= maxAliases;
  const readResult = hasAcceptableAliases ? explainYamlDocument({ ...textPart, text: leadingText }) : undefined;
  const position = new LineStarts(textPart).positionOf(offset);
  return {
    value: readResult?.value,
    errors: [{ ...position, message }],
    positionOf: (path) => readResult?.positionOf(path) ?? position,
  };
}

function plainYamlDocument(textPart: TextPart, plainDocument: PlainDocument): YamlDocument {
  const lineStarts = new LineStarts(textPart);
  let explainedDocument: YamlDocument | undefined;
  return {
    value: plainDocument.value,
    errors: [],
    positionOf: (path) => {
      const keys = pathKeys(path);
      for (let length = keys.length; length >= 0; length--) {
        const offset = plainDocument.offsetOf(keys.slice(0, length));
        if (offset !== undefined) return lineStarts.positionOf(offset);
        if (textPart.text.length > maxExplainedLength) continue;
        explainedDocument ??= explainYamlDocument(textPart);
        return explainedDocument.positionOf(path);
      }
      return lineStarts.positionOf(0);
    },
  };
}

class LineStarts {
  readonly #textPart: TextPart;
  #starts: readonly number[] | undefined;

  constructor(textPart: TextPart) {
    this.#textPart = textPart;
  }

  positionOf(offset: number): YamlPosition {
    this.#starts ??= lineStartsOf(this.#textPart.text);
    let [lowIndex, highIndex] = [0, this.#starts.length - 1];
    while (lowIndex < highIndex) {
      const middle = (lowIndex + highIndex + 1) >> 1;
      if (this.#starts[middle]! <= offset) lowIndex = middle;
      else highIndex = middle - 1;
    }
    return { line: this.#textPart.line + lowIndex, column: offset - this.#starts[lowIndex]! + 1 };
  }
}

function lineStartsOf(text: string): number[] {
  const starts = [0];
  for (let newlineIndex = text.indexOf('\n'); newlineIndex >= 0; newlineIndex = text.indexOf('\n', newlineIndex + 1))
    starts.push(newlineIndex + 1);
  return starts;
}

/** Parses with all positions and errors; much slower. Never throws. */
export function explainYamlDocument(textPart: TextPart): YamlDocument {
  const lineCounter = new LineCounter();
  const positionAt = (offset: number): YamlPosition => {
    const { line, col } = lineCounter.linePos(Math.min(offset, textPart.text.length));
    return { line: textPart.line + Math.max(line, 1) - 1, column: Math.max(col, 1) };
  };
  const errors: (YamlPosition & { message: string })[] = [];
  try {
    // `uniqueKeys` would compare each key with all previous keys.
    const options = { lineCounter, prettyErrors: false, merge: true, logLevel: 'error', uniqueKeys: false } as const;
    const document = parseDocument(textPart.text, options);
    const circularErrors = circularAliases(document);
    for (const { pos, message } of [...document.errors, ...repeatedKeys(document), ...circularErrors].sort(
      (a, b) => a.pos[0] - b.pos[0],
    )) {
      if (errors.length < maxErrors) errors.push({ ...positionAt(pos[0]), message: explainedMessage(message) });
    }
    const positionOf = (path: string): YamlPosition => positionAt(offsetOf(document, path));
    const aliasedValue = circularErrors.length > 0 ? undefined : aliasedValueOf(document);
    if (aliasedValue !== undefined && 'value' in aliasedValue) return { value: aliasedValue.value, errors, positionOf };
    if (aliasedValue !== undefined) {
      errors.push({ ...positionAt(firstAlias(document) ?? 0), message: explainedMessage(aliasedValue.violation) });
    }
    return { value: valueWithoutAliases(document), errors, positionOf };
  } catch (error) {
    const position: YamlPosition = { line: textPart.line, column: 1 };
    const message = explainedMessage(error instanceof Error ? error.message : String(error));
    return { value: undefined, errors: [{ ...position, message }], positionOf: () => position };
  }
}

function aliasedValueOf(document: Document): { readonly value: unknown } | { readonly violation: string } {
  try {
    // Aliases of an anchor share one object, so the cost is linear in the text.
    const value: unknown = document.toJS({ maxAliasCount: -1 });
    const violation = firstAlias(document) === undefined ? undefined : aliasViolation(value);
    return violation === undefined ? { value } : { violation };
  } catch (error) {
    // An alias has no anchor, or a value is nested too deep.
    return { violation: error instanceof Error ? error.message : String(error) };
  }
}

/** Finds aliases inside their own anchor, whose value would be infinite. */
function circularAliases(document: Document): { pos: readonly [number]; message: string }[] {
  const foundErrors: { pos: readonly [number]; message: string }[] = [];
  visit(document, {
    Alias: (_, alias, path) => {
      const target = alias.resolve(document);
      if (target === undefined || !path.includes(target)) return;
      const message = `alias *${alias.source} refers to a value that contains it: write the value without an alias`;
      foundErrors.push({ pos: [rangeStart(alias) ?? 0], message });
    },
  });
  return foundErrors;
}

function firstAlias(document: Document): number | undefined {
  let firstOffset: number | undefined;
  visit(document, {
    Alias: (_, alias) => {
      firstOffset = rangeStart(alias);
      return visit.BREAK;
    },
  });
  return firstOffset;
}

/** Returns a value that identifies the object even if aliases are invalid. */
function valueWithoutAliases(document: Document): unknown {
  const copy = document.clone();
  visit(copy, {
    Pair: (_, { value }) => (isAlias(value) ? visit.REMOVE : undefined),
    Alias: () => copy.createNode(null),
  });
  return copy.toJS();
}

function explainedMessage(message: string): string {
  if (message.includes('call stack')) return `nested deeper than ${maxNesting} levels`;
  return message.startsWith('Source contains multiple documents')
    ? 'another document begins here: write a --- line before it'
    : message;
}

function repeatedKeys(document: Document): { pos: readonly [number]; message: string }[] {
  const repeatedErrors: { pos: readonly [number]; message: string }[] = [];
  visit(document, {
    Map: (_, map) => {
      const seenKeys = new Set<unknown>();
      for (const { key } of map.items) {
        if (!isScalar(key)) continue;
        if (seenKeys.has(key.value))
          repeatedErrors.push({ pos: [rangeStart(key) ?? 0], message: 'Map keys must be unique' });
        seenKeys.add(key.value);
      }
    },
  });
  return repeatedErrors;
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

function pathKeys(path: string): (string | number)[] {
  return [...path.matchAll(/\[(\d+)\]|\["((?:[^"\\]|\\.)*)"\]|([\w-]+)/g)].map(([, index, quotedKey, plainKey]) => {
    if (index !== undefined) return Number(index);
    return quotedKey === undefined ? plainKey! : (JSON.parse(`"${quotedKey}"`) as string);
  });
}
