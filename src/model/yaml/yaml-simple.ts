/**
 * Parses the most common form of YAML: block maps and lists with one value per line and no escapes. Other documents are declined and read by another
 * parser, which gives accepted documents the same value (yaml-simple.test.ts).
 */
import { CORE_SCHEMA } from 'js-yaml';

export interface SimpleDocument {
  readonly value: Readonly<Record<string, unknown>>;
  readonly start: number;
}

/** Declined characters: all but line feeds and printable ASCII, such as tabs and other line breaks. */
const unusualCharacter = /[^\n\x20-\x7e]/;

/** Deeper documents are declined; the other parser reports the limit. */
const maxDepth = 32;

/** Lists of objects are declined, because the other parser determines positions of items. */
const listOfObjects = /^items:/m;

const space = 0x20;
const hash = 0x23;
const dash = 0x2d;
const colon = 0x3a;
const doubleQuote = 0x22;
const singleQuote = 0x27;
const backslash = 0x5c;

const nameCharacters = charactersOf('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./-');
const nameStarts = charactersOf('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_');
const digits = charactersOf('0123456789');
const numberCharacters = charactersOf('0123456789+-.');
/** First characters of scalars that are always strings, never a number, boolean or null. */
const textStarts = charactersOf('ABCDEGHIJKLMOPQRSUVWXYZabcdeghijklmopqrsuvwxyz/_');

/** Keys that are not strings, or that are special in JavaScript. */
const oddKeys: ReadonlySet<string> = new Set([
  ...['null', 'Null', 'NULL', 'true', 'True', 'TRUE', 'false', 'False', 'FALSE', '__proto__'],
]);

const maxKeyLength = 256;

function charactersOf(text: string): Uint8Array {
  const table = new Uint8Array(128);
  for (const character of text) table[character.charCodeAt(0)] = 1;
  return table;
}

/** One error object for all documents, because its content is never read. */
const notSimple = new Error('not simple');

export function readSimpleDocument(text: string): SimpleDocument | undefined {
  if (unusualCharacter.test(text) || listOfObjects.test(text)) return undefined;
  try {
    return new SimpleReader(text).read();
  } catch (error) {
    if (error === notSimple) return undefined;
    throw error;
  }
}

class SimpleReader {
  readonly #text: string;
  /** Offset of the first non-space character of the next line with content. */
  #position = 0;
  #end = -1;
  /** Indentation of this line; -1 after the last line. */
  #indent = 0;

  constructor(text: string) {
    this.#text = text;
  }

  read(): SimpleDocument {
    this.#nextLine();
    if (this.#indent === 0 && this.#text.slice(this.#position, this.#end) === '---') this.#nextLine();
    if (this.#indent !== 0) throw notSimple;
    const start = this.#position;
    const value = this.#map(0, 0);
    // The indentation matches no enclosing map or list, so this is a continued value or an error.
    if (!this.#isAtEnd) throw notSimple;
    return { value, start };
  }

  get #isAtEnd(): boolean {
    return this.#indent === -1;
  }

  #nextLine(): void {
    const text = this.#text;
    let lineStart = this.#end + 1;
    while (lineStart < text.length) {
      let end = text.indexOf('\n', lineStart);
      if (end < 0) end = text.length;
      let position = lineStart;
      while (position < end && text.charCodeAt(position) === space) position++;
      if (position < end && text.charCodeAt(position) !== hash) {
        this.#position = position;
        this.#end = end;
        this.#indent = position - lineStart;
        return;
      }
      lineStart = end + 1;
    }
    this.#end = text.length;
    this.#indent = -1;
  }

  #map(indent: number, depth: number): Record<string, unknown> {
    const map: Record<string, unknown> = {};
    do {
      const keyEnd = this.#keyEnd();
      if (keyEnd < 0) throw notSimple;
      const key = this.#text.slice(this.#position, keyEnd);
      if (oddKeys.has(key) || Object.hasOwn(map, key)) throw notSimple;
      map[key] = this.#valueAfterKey(keyEnd + 1, indent, depth);
    } while (this.#indent === indent);
    return map;
  }

  /** Offset of the key's colon; -1 if the line has no key. */
  #keyEnd(): number {
    const text = this.#text;
    let position = this.#position;
    if (nameStarts[text.charCodeAt(position)] !== 1) return -1;
    while (position < this.#end && nameCharacters[text.charCodeAt(position)] === 1) position++;
    if (position >= this.#end || position - this.#position > maxKeyLength || text.charCodeAt(position) !== colon)
      return -1;
    return position + 1 === this.#end || text.charCodeAt(position + 1) === space ? position : -1;
  }

  #valueAfterKey(start: number, indent: number, depth: number): unknown {
    const position = this.#skipSpaces(start);
    if (position < this.#end) return this.#inlineValue(position, depth);
    if (depth >= maxDepth) throw notSimple;
    this.#nextLine();
    // A list can have the same indentation as its key.
    if (this.#indent >= indent && this.#isItem(this.#position)) return this.#list(this.#indent, depth + 1);
    if (this.#indent <= indent) throw notSimple;
    return this.#map(this.#indent, depth + 1);
  }

  #isItem(position: number): boolean {
    return this.#text.charCodeAt(position) === dash && this.#text.charCodeAt(position + 1) === space;
  }

  #list(indent: number, depth: number): unknown[] {
    const list: unknown[] = [];
    do {
      const position = this.#skipSpaces(this.#position + 1);
      if (position >= this.#end || depth >= maxDepth) throw notSimple;
      // The indentation of an item's content is that of the content's first character.
      const itemIndent = indent + position - this.#position;
      this.#position = position;
      this.#indent = itemIndent;
      list.push(this.#keyEnd() < 0 ? this.#inlineValue(position, depth) : this.#map(itemIndent, depth + 1));
    } while (this.#indent === indent && this.#isItem(this.#position));
    return list;
  }

  #inlineValue(position: number, depth: number): unknown {
    const text = this.#text;
    const first = text.charCodeAt(position);
    let value: unknown;
    if (first === doubleQuote || first === singleQuote) {
      const end = this.#quoteEnd(position, first);
      this.#expectCommentOrEnd(end + 1);
      value = text.slice(position + 1, end);
    } else if (first === 0x5b || first === 0x7b) {
      value = this.#flow(position, depth);
      this.#expectCommentOrEnd(this.#flowEnd);
    } else value = this.#plain(position);
    this.#nextLine();
    return value;
  }

  #skipSpaces(start: number): number {
    let position = start;
    while (position < this.#end && this.#text.charCodeAt(position) === space) position++;
    return position;
  }

  #expectCommentOrEnd(start: number): void {
    const position = this.#skipSpaces(start);
    if (position < this.#end && (position === start || this.#text.charCodeAt(position) !== hash)) throw notSimple;
  }

  #quoteEnd(position: number, quote: number): number {
    const text = this.#text;
    for (let end = position + 1; end < this.#end; end++) {
      const code = text.charCodeAt(end);
      // A doubled quote is an escape, so the caller rejects the remaining text.
      if (code === quote) return end;
      if (code === backslash && quote === doubleQuote) throw notSimple;
    }
    throw notSimple;
  }

  #plain(position: number): unknown {
    const text = this.#text;
    if (!mayBeginPlain(text, position)) throw notSimple;
    let end = position + 1;
    let textEnd = end;
    for (; end < this.#end; end++) {
      const code = text.charCodeAt(end);
      if (code === space) {
        if (text.charCodeAt(end + 1) === hash) break;
        continue;
      }
      if (code === colon && (end + 1 === this.#end || text.charCodeAt(end + 1) === space)) throw notSimple;
      textEnd = end + 1;
    }
    return plainValue(text.slice(position, textEnd));
  }

  #flowEnd = 0;

  /** Parses a list in brackets or a map in braces on one line, and sets `#flowEnd`. */
  #flow(from: number, depth: number): unknown {
    if (depth >= maxDepth) throw notSimple;
    const text = this.#text;
    const isMap = text.charCodeAt(from) === 0x7b;
    const closingCharacter = isMap ? 0x7d : 0x5d;
    const list: unknown[] = [];
    const map: Record<string, unknown> = {};
    let position = this.#skipSpaces(from + 1);
    if (text.charCodeAt(position) === closingCharacter && position < this.#end) {
      this.#flowEnd = position + 1;
      return isMap ? map : list;
    }
    for (;;) {
      let key = '';
      if (isMap) {
        const start = position;
        while (position < this.#end && nameCharacters[text.charCodeAt(position)] === 1) position++;
        key = text.slice(start, position);
        const isKey = nameStarts[text.charCodeAt(start)] === 1 && key.length <= maxKeyLength;
        if (!isKey || oddKeys.has(key) || Object.hasOwn(map, key)) throw notSimple;
        if (text.charCodeAt(position) !== colon || text.charCodeAt(position + 1) !== space) throw notSimple;
        position = this.#skipSpaces(position + 1);
      }
      if (position >= this.#end) throw notSimple;
      const value = this.#flowValue(position, depth);
      if (isMap) map[key] = value;
      else list.push(value);
      position = this.#skipSpaces(this.#flowEnd);
      if (position >= this.#end) throw notSimple;
      const code = text.charCodeAt(position);
      if (code === closingCharacter) break;
      if (code !== 0x2c) throw notSimple;
      position = this.#skipSpaces(position + 1);
    }
    this.#flowEnd = position + 1;
    return isMap ? map : list;
  }

  #flowValue(position: number, depth: number): unknown {
    const text = this.#text;
    const first = text.charCodeAt(position);
    if (first === doubleQuote || first === singleQuote) {
      const end = this.#quoteEnd(position, first);
      this.#flowEnd = end + 1;
      return text.slice(position + 1, end);
    }
    if (first === 0x5b || first === 0x7b) return this.#flow(position, depth + 1);
    let end = position;
    while (end < this.#end && nameCharacters[text.charCodeAt(end)] === 1) end++;
    if (end === position || !mayBeginPlain(text, position)) throw notSimple;
    this.#flowEnd = end;
    return plainValue(text.slice(position, end));
  }
}

function mayBeginPlain(text: string, position: number): boolean {
  const code = text.charCodeAt(position);
  if (code === dash) return digits[text.charCodeAt(position + 1)] === 1;
  return nameCharacters[code] === 1;
}

function plainValue(text: string): unknown {
  if (textStarts[text.charCodeAt(0)] === 1) return text;
  const { value } = CORE_SCHEMA.resolveImplicitScalarTag(text);
  if (isHugeNumber(text, value)) throw notSimple;
  return value;
}

const number = /^(?:[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?|0o[0-7]+|0x[\da-fA-F]+)$/;

/** Whether a plain scalar is a number that JavaScript cannot represent. Parsers read it as infinity or as a string. */
export function isHugeNumber(text: string, value: unknown): boolean {
  return typeof value === 'string' && numberCharacters[text.charCodeAt(0)] === 1 && number.test(text);
}
