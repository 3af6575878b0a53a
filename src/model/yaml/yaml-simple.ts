/**
 * Parses the most common form of YAML: block maps and lists with one value per line and no escapes. A single pass is several times as fast as a
 * complete YAML parser. Documents with any other construct are declined and read by another parser, which gives accepted documents the same value
 * (yaml-simple.test.ts).
 */
import { CORE_SCHEMA } from 'js-yaml';

export interface SimpleDocument {
  readonly value: Readonly<Record<string, unknown>>;
  /** Offset of the first key. */
  readonly start: number;
}

/** Declined characters: tabs, other line breaks and other letters, everything but line feeds and printable ASCII. */
const unusual = /[^\n\x20-\x7e]/;

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

/** Characters of plain scalars, as a table over ASCII. */
const inName = charactersOf('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./-');
const beginsName = charactersOf('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_');
const digits = charactersOf('0123456789');
const digitOrSign = charactersOf('0123456789+-.');
/** First characters of scalars that are always strings, never a number, boolean or null. */
const beginsText = charactersOf('ABCDEGHIJKLMOPQRSUVWXYZabcdeghijklmopqrsuvwxyz/_');

/** Keys that are not strings, or that are special in JavaScript. */
const oddKeys: ReadonlySet<string> = new Set([
  ...['null', 'Null', 'NULL', 'true', 'True', 'TRUE', 'false', 'False', 'FALSE', '__proto__'],
]);

/** Maximum key length; the standard allows 1,024 characters for an implicit key. */
const maxKeyLength = 256;

function charactersOf(text: string): Uint8Array {
  const table = new Uint8Array(128);
  for (const character of text) table[character.charCodeAt(0)] = 1;
  return table;
}

/** One error object for all documents, because its content is never read. */
const notSimple = new Error('not simple');

/** Returns `undefined` if the document does not have the simple form. */
export function readSimpleDocument(text: string): SimpleDocument | undefined {
  if (unusual.test(text) || listOfObjects.test(text)) return undefined;
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
  #at = 0;
  #end = -1;
  /** Indentation of this line; -1 after the last line. */
  #indent = 0;

  constructor(text: string) {
    this.#text = text;
  }

  read(): SimpleDocument {
    this.#nextLine();
    if (this.#indent === 0 && this.#text.slice(this.#at, this.#end) === '---') this.#nextLine();
    if (this.#indent !== 0) throw notSimple;
    const start = this.#at;
    const value = this.#map(0, 0);
    // The indentation matches no enclosing map or list, so this is a continued value or an error.
    if (!this.#isAtEnd) throw notSimple;
    return { value, start };
  }

  get #isAtEnd(): boolean {
    return this.#indent === -1;
  }

  /** Advances to the next line that is neither empty nor a comment. */
  #nextLine(): void {
    const text = this.#text;
    let lineStart = this.#end + 1;
    while (lineStart < text.length) {
      let end = text.indexOf('\n', lineStart);
      if (end < 0) end = text.length;
      let at = lineStart;
      while (at < end && text.charCodeAt(at) === space) at++;
      if (at < end && text.charCodeAt(at) !== hash) {
        this.#at = at;
        this.#end = end;
        this.#indent = at - lineStart;
        return;
      }
      lineStart = end + 1;
    }
    this.#end = text.length;
    this.#indent = -1;
  }

  /** Parses a map whose first key is on the current line. */
  #map(indent: number, depth: number): Record<string, unknown> {
    const map: Record<string, unknown> = {};
    do {
      const keyEnd = this.#keyEnd();
      if (keyEnd < 0) throw notSimple;
      const key = this.#text.slice(this.#at, keyEnd);
      if (oddKeys.has(key) || Object.hasOwn(map, key)) throw notSimple;
      map[key] = this.#valueBehind(keyEnd + 1, indent, depth);
    } while (this.#indent === indent);
    return map;
  }

  /** Offset of the key's colon; -1 if the line has no key. */
  #keyEnd(): number {
    const text = this.#text;
    let at = this.#at;
    if (beginsName[text.charCodeAt(at)] !== 1) return -1;
    while (at < this.#end && inName[text.charCodeAt(at)] === 1) at++;
    if (at >= this.#end || at - this.#at > maxKeyLength || text.charCodeAt(at) !== colon) return -1;
    return at + 1 === this.#end || text.charCodeAt(at + 1) === space ? at : -1;
  }

  /** @param indent of the map that contains the key */
  #valueBehind(from: number, indent: number, depth: number): unknown {
    const at = this.#skipSpaces(from);
    if (at < this.#end) return this.#inLine(at, depth);
    if (depth >= maxDepth) throw notSimple;
    this.#nextLine();
    // A list can have the same indentation as its key.
    if (this.#indent >= indent && this.#isItem(this.#at)) return this.#list(this.#indent, depth + 1);
    if (this.#indent <= indent) throw notSimple;
    return this.#map(this.#indent, depth + 1);
  }

  #isItem(at: number): boolean {
    return this.#text.charCodeAt(at) === dash && this.#text.charCodeAt(at + 1) === space;
  }

  #list(indent: number, depth: number): unknown[] {
    const list: unknown[] = [];
    do {
      const at = this.#skipSpaces(this.#at + 1);
      if (at >= this.#end || depth >= maxDepth) throw notSimple;
      // The indentation of an item's content is that of the content's first character.
      const inner = indent + at - this.#at;
      this.#at = at;
      this.#indent = inner;
      list.push(this.#keyEnd() < 0 ? this.#inLine(at, depth) : this.#map(inner, depth + 1));
    } while (this.#indent === indent && this.#isItem(this.#at));
    return list;
  }

  #inLine(at: number, depth: number): unknown {
    const text = this.#text;
    const first = text.charCodeAt(at);
    let value: unknown;
    if (first === doubleQuote || first === singleQuote) {
      const end = this.#quoteEnd(at, first);
      this.#restIsComment(end + 1);
      value = text.slice(at + 1, end);
    } else if (first === 0x5b || first === 0x7b) {
      value = this.#flow(at, depth);
      this.#restIsComment(this.#flowEnd);
    } else value = this.#plain(at);
    this.#nextLine();
    return value;
  }

  #skipSpaces(from: number): number {
    let at = from;
    while (at < this.#end && this.#text.charCodeAt(at) === space) at++;
    return at;
  }

  #restIsComment(from: number): void {
    const at = this.#skipSpaces(from);
    if (at < this.#end && (at === from || this.#text.charCodeAt(at) !== hash)) throw notSimple;
  }

  /** Offset of the closing quote of a text without escapes. */
  #quoteEnd(at: number, quote: number): number {
    const text = this.#text;
    for (let end = at + 1; end < this.#end; end++) {
      const code = text.charCodeAt(end);
      // A doubled quote is an escape, so the caller rejects the remaining text.
      if (code === quote) return end;
      if (code === backslash && quote === doubleQuote) throw notSimple;
    }
    throw notSimple;
  }

  /** Parses a plain scalar up to the end of line or a comment. */
  #plain(at: number): unknown {
    const text = this.#text;
    if (!mayBeginPlain(text, at)) throw notSimple;
    let end = at + 1;
    let last = end;
    for (; end < this.#end; end++) {
      const code = text.charCodeAt(end);
      if (code === space) {
        if (text.charCodeAt(end + 1) === hash) break;
        continue;
      }
      if (code === colon && (end + 1 === this.#end || text.charCodeAt(end + 1) === space)) throw notSimple;
      last = end + 1;
    }
    return plainValue(text.slice(at, last));
  }

  #flowEnd = 0;

  /** Parses a list in brackets or a map in braces on one line; sets `#flowEnd` to its end. */
  #flow(from: number, depth: number): unknown {
    if (depth >= maxDepth) throw notSimple;
    const text = this.#text;
    const isMap = text.charCodeAt(from) === 0x7b;
    const close = isMap ? 0x7d : 0x5d;
    const list: unknown[] = [];
    const map: Record<string, unknown> = {};
    let at = this.#skipSpaces(from + 1);
    if (text.charCodeAt(at) === close && at < this.#end) {
      this.#flowEnd = at + 1;
      return isMap ? map : list;
    }
    for (;;) {
      let key = '';
      if (isMap) {
        const start = at;
        while (at < this.#end && inName[text.charCodeAt(at)] === 1) at++;
        key = text.slice(start, at);
        const isKey = beginsName[text.charCodeAt(start)] === 1 && key.length <= maxKeyLength;
        if (!isKey || oddKeys.has(key) || Object.hasOwn(map, key)) throw notSimple;
        if (text.charCodeAt(at) !== colon || text.charCodeAt(at + 1) !== space) throw notSimple;
        at = this.#skipSpaces(at + 1);
      }
      if (at >= this.#end) throw notSimple;
      const value = this.#flowValue(at, depth);
      if (isMap) map[key] = value;
      else list.push(value);
      at = this.#skipSpaces(this.#flowEnd);
      if (at >= this.#end) throw notSimple;
      const code = text.charCodeAt(at);
      if (code === close) break;
      if (code !== 0x2c) throw notSimple;
      at = this.#skipSpaces(at + 1);
    }
    this.#flowEnd = at + 1;
    return isMap ? map : list;
  }

  #flowValue(at: number, depth: number): unknown {
    const text = this.#text;
    const first = text.charCodeAt(at);
    if (first === doubleQuote || first === singleQuote) {
      const end = this.#quoteEnd(at, first);
      this.#flowEnd = end + 1;
      return text.slice(at + 1, end);
    }
    if (first === 0x5b || first === 0x7b) return this.#flow(at, depth + 1);
    let end = at;
    while (end < this.#end && inName[text.charCodeAt(end)] === 1) end++;
    if (end === at || !mayBeginPlain(text, at)) throw notSimple;
    this.#flowEnd = end;
    return plainValue(text.slice(at, end));
  }
}

/** Accepts letters, digits, and the first characters of numbers and paths. */
function mayBeginPlain(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  if (code === dash) return digits[text.charCodeAt(at + 1)] === 1;
  return inName[code] === 1;
}

function plainValue(text: string): unknown {
  if (beginsText[text.charCodeAt(0)] === 1) return text;
  const { value } = CORE_SCHEMA.resolveImplicitScalarTag(text);
  if (isHugeNumber(text, value)) throw notSimple;
  return value;
}

const number = /^(?:[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?|0o[0-7]+|0x[\da-fA-F]+)$/;

/** Whether a plain scalar is a number that JavaScript cannot represent. Parsers read it as infinity or as a string. */
export function isHugeNumber(text: string, value: unknown): boolean {
  return typeof value === 'string' && digitOrSign[text.charCodeAt(0)] === 1 && number.test(text);
}
