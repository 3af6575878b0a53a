/**
 * Parses the most common form of YAML: block maps and lists with one value per line and no escapes. Declines other documents, which another parser
 * reads. Both parsers give an accepted document the same value (yaml-simple.test.ts).
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
const unsupportedKeys: ReadonlySet<string> = new Set([
  ...['null', 'Null', 'NULL', 'true', 'True', 'TRUE', 'false', 'False', 'FALSE', '__proto__'],
]);

const maxKeyLength = 256;

function charactersOf(text: string): Uint8Array {
  const table = new Uint8Array(128);
  for (const character of text) table[character.charCodeAt(0)] = 1;
  return table;
}

/** One error object for all documents, because its content is never read. */
const notSimpleError = new Error('not simple');

export function readSimpleDocument(text: string): SimpleDocument | undefined {
  if (unusualCharacter.test(text) || listOfObjects.test(text)) return undefined;
  try {
    return new SimpleReader(text).read();
  } catch (error) {
    if (error === notSimpleError) return undefined;
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
    this.#skipToNextLine();
    if (this.#indent === 0 && this.#text.slice(this.#position, this.#end) === '---') this.#skipToNextLine();
    if (this.#indent !== 0) throw notSimpleError;
    const start = this.#position;
    const value = this.#readMap(0, 0);
    // The indentation matches no enclosing map or list, so this is a continued value or an error.
    if (!this.#isAtEnd) throw notSimpleError;
    return { value, start };
  }

  get #isAtEnd(): boolean {
    return this.#indent === -1;
  }

  #skipToNextLine(): void {
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

  #readMap(indent: number, depth: number): Record<string, unknown> {
    const map: Record<string, unknown> = {};
    do {
      const keyEnd = this.#keyEnd();
      if (keyEnd < 0) throw notSimpleError;
      const key = this.#text.slice(this.#position, keyEnd);
      if (unsupportedKeys.has(key) || Object.hasOwn(map, key)) throw notSimpleError;
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
    if (position < this.#end) return this.#readInlineValue(position, depth);
    if (depth >= maxDepth) throw notSimpleError;
    this.#skipToNextLine();
    // A list can have the same indentation as its key.
    if (this.#indent >= indent && this.#isListItem(this.#position)) return this.#readList(this.#indent, depth + 1);
    if (this.#indent <= indent) throw notSimpleError;
    return this.#readMap(this.#indent, depth + 1);
  }

  #isListItem(position: number): boolean {
    return this.#text.charCodeAt(position) === dash && this.#text.charCodeAt(position + 1) === space;
  }

  #readList(indent: number, depth: number): unknown[] {
    const list: unknown[] = [];
    do {
      const position = this.#skipSpaces(this.#position + 1);
      if (position >= this.#end || depth >= maxDepth) throw notSimpleError;
      // The indentation of an item's content is that of the content's first character.
      const itemIndent = indent + position - this.#position;
      this.#position = position;
      this.#indent = itemIndent;
      list.push(this.#keyEnd() < 0 ? this.#readInlineValue(position, depth) : this.#readMap(itemIndent, depth + 1));
    } while (this.#indent === indent && this.#isListItem(this.#position));
    return list;
  }

  #readInlineValue(position: number, depth: number): unknown {
    const text = this.#text;
    const firstCode = text.charCodeAt(position);
    let value: unknown;
    if (firstCode === doubleQuote || firstCode === singleQuote) {
      const end = this.#quoteEnd(position, firstCode);
      this.#expectCommentOrEnd(end + 1);
      value = text.slice(position + 1, end);
    } else if (firstCode === 0x5b || firstCode === 0x7b) {
      value = this.#readFlow(position, depth);
      this.#expectCommentOrEnd(this.#flowEnd);
    } else value = this.#readPlain(position);
    this.#skipToNextLine();
    return value;
  }

  #skipSpaces(start: number): number {
    let position = start;
    while (position < this.#end && this.#text.charCodeAt(position) === space) position++;
    return position;
  }

  #expectCommentOrEnd(start: number): void {
    const position = this.#skipSpaces(start);
    if (position < this.#end && (position === start || this.#text.charCodeAt(position) !== hash)) throw notSimpleError;
  }

  #quoteEnd(position: number, quote: number): number {
    const text = this.#text;
    for (let end = position + 1; end < this.#end; end++) {
      const code = text.charCodeAt(end);
      // A doubled quote is an escape, so the caller rejects the remaining text.
      if (code === quote) return end;
      if (code === backslash && quote === doubleQuote) throw notSimpleError;
    }
    throw notSimpleError;
  }

  #readPlain(position: number): unknown {
    const text = this.#text;
    if (!canStartPlainScalar(text, position)) throw notSimpleError;
    let end = position + 1;
    let textEnd = end;
    for (; end < this.#end; end++) {
      const code = text.charCodeAt(end);
      if (code === space) {
        if (text.charCodeAt(end + 1) === hash) break;
        continue;
      }
      if (code === colon && (end + 1 === this.#end || text.charCodeAt(end + 1) === space)) throw notSimpleError;
      textEnd = end + 1;
    }
    return plainValue(text.slice(position, textEnd));
  }

  #flowEnd = 0;

  /** Parses a list in brackets or a map in braces on one line, and sets `#flowEnd`. */
  #readFlow(openIndex: number, depth: number): unknown {
    if (depth >= maxDepth) throw notSimpleError;
    const text = this.#text;
    const isMap = text.charCodeAt(openIndex) === 0x7b;
    const closingCharacter = isMap ? 0x7d : 0x5d;
    const list: unknown[] = [];
    const map: Record<string, unknown> = {};
    let position = this.#skipSpaces(openIndex + 1);
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
        if (!isKey || unsupportedKeys.has(key) || Object.hasOwn(map, key)) throw notSimpleError;
        if (text.charCodeAt(position) !== colon || text.charCodeAt(position + 1) !== space) throw notSimpleError;
        position = this.#skipSpaces(position + 1);
      }
      if (position >= this.#end) throw notSimpleError;
      const value = this.#readFlowValue(position, depth);
      if (isMap) map[key] = value;
      else list.push(value);
      position = this.#skipSpaces(this.#flowEnd);
      if (position >= this.#end) throw notSimpleError;
      const code = text.charCodeAt(position);
      if (code === closingCharacter) break;
      if (code !== 0x2c) throw notSimpleError;
      position = this.#skipSpaces(position + 1);
    }
    this.#flowEnd = position + 1;
    return isMap ? map : list;
  }

  #readFlowValue(position: number, depth: number): unknown {
    const text = this.#text;
    const firstCode = text.charCodeAt(position);
    if (firstCode === doubleQuote || firstCode === singleQuote) {
      const end = this.#quoteEnd(position, firstCode);
      this.#flowEnd = end + 1;
      return text.slice(position + 1, end);
    }
    if (firstCode === 0x5b || firstCode === 0x7b) return this.#readFlow(position, depth + 1);
    let end = position;
    while (end < this.#end && nameCharacters[text.charCodeAt(end)] === 1) end++;
    if (end === position || !canStartPlainScalar(text, position)) throw notSimpleError;
    this.#flowEnd = end;
    return plainValue(text.slice(position, end));
  }
}

function canStartPlainScalar(text: string, position: number): boolean {
  const code = text.charCodeAt(position);
  if (code === dash) return digits[text.charCodeAt(position + 1)] === 1;
  return nameCharacters[code] === 1;
}

function plainValue(text: string): unknown {
  if (textStarts[text.charCodeAt(0)] === 1) return text;
  const { value } = CORE_SCHEMA.resolveImplicitScalarTag(text);
  if (isHugeNumber(text, value)) throw notSimpleError;
  return value;
}

const number = /^(?:[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?|0o[0-7]+|0x[\da-fA-F]+)$/;

/** Whether a plain scalar is a number that JavaScript cannot represent. Parsers read it as infinity or as a string. */
export function isHugeNumber(text: string, value: unknown): boolean {
  return typeof value === 'string' && numberCharacters[text.charCodeAt(0)] === 1 && number.test(text);
}
