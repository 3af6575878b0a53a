/**
 * One YAML document: its value, its mistakes of syntax, and where in the file each field is. YAML is read as version 1.2
 * with its core schema and merge keys: `yes`, `no`, `on` and `off` are texts (where a field wants true or false, its
 * decoder says so), and numbers have no sexagesimals.
 */
import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from 'yaml';
import { type PlainDocument, parsePlainDocument } from './yaml-fast.ts';

export interface Position {
  /** 1-based. */
  readonly line: number;
  /** 1-based. */
  readonly column: number;
}

export interface YamlDocument {
  /** As far as it could be read, when there are mistakes. */
  readonly value: unknown;
  readonly mistakes: readonly (Position & { readonly message: string })[];
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
  const parts: TextPart[] = [];
  let start = 0;
  let line = 1;
  let partLine = 1;
  for (let end = text.indexOf('\n'); ; end = text.indexOf('\n', end + 1)) {
    const next = end < 0 ? text.length : end + 1;
    const lineStart = end < 0 ? text.length : next;
    const cut = end < 0 || /^---(?:\s|$)/.test(text.slice(lineStart, lineStart + 4));
    if (end >= 0) line++;
    if (!cut) continue;
    const part = text.slice(start, next);
    // Directives and comments before the first marker belong to what follows it.
    if (end < 0 || !/^(?:\s*(?:[#%].*)?(?:\r?\n|$))*$/.test(part)) {
      parts.push({ text: part, line: partLine });
      [start, partLine] = [next, line];
    }
    if (end < 0) return parts;
  }
}

/** Reads one document. Never throws. The parser that knows every position is asked only when it is needed. */
export function parseYamlDocument(part: TextPart): YamlDocument {
  const plain = parsePlainDocument(part.text);
  return plain === undefined ? explainYamlDocument(part) : plainYamlDocument(part, plain);
}

function plainYamlDocument(part: TextPart, plain: PlainDocument): YamlDocument {
  const lineStarts = new LineStarts(part);
  let items: readonly (number | undefined)[] | undefined;
  let explained: YamlDocument | undefined;
  const startOf = (path: string): number | undefined => {
    if (path === '') return plain.start;
    const index = /^items\[(\d+)\]$/.exec(path)?.[1];
    if (index === undefined) return undefined;
    items ??= plain.itemStarts();
    return items[Number(index)];
  };
  return {
    value: plain.value,
    mistakes: [],
    positionOf: (path) => {
      const start = startOf(path);
      if (start !== undefined) return lineStarts.positionOf(start);
      explained ??= explainYamlDocument(part);
      return explained.positionOf(path);
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
  const document = parseDocument(part.text, { lineCounter, prettyErrors: false, merge: true, logLevel: 'error' });
  const at = (offset: number): Position => {
    const { line, col } = lineCounter.linePos(Math.min(offset, part.text.length));
    return { line: part.line + Math.max(line, 1) - 1, column: Math.max(col, 1) };
  };
  const mistakes = document.errors.map((error) => ({ ...at(error.pos[0]), message: error.message }));
  let value: unknown;
  try {
    value = document.toJS();
  } catch (error) {
    // An alias without its anchor, or too many of them.
    mistakes.push({ ...at(0), message: error instanceof Error ? error.message : String(error) });
  }
  return { value, mistakes, positionOf: (path) => at(offsetOf(document, path)) };
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
