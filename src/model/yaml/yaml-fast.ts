/**
 * Values of a YAML document, five times as fast as the parser that can also explain mistakes. What is plain in a document
 * is read here; whatever is odd in it is left to that parser, so that the two never give different values
 * (yaml-fast.test.ts holds them against each other).
 */
import {
  COLLECTION_STYLE,
  CORE_SCHEMA,
  EVENT_ID,
  type Event,
  getScalarValue,
  parseEvents,
  SCALAR_STYLE,
  type ScalarEvent,
  YAMLException,
} from 'js-yaml';
import { isHugeNumber, readSimpleDocument } from './yaml-simple.ts';

export interface PlainDocument {
  readonly value: unknown;
  /**
   * Offset of a field, or of the deepest part of its path that is there; undefined where only the other parser knows it.
   *
   * @param path names and indices from the document's root down
   */
  offsetOf(path: readonly (string | number)[]): number | undefined;
}

/** Why a document is left to the other parser. */
export type NotPlain =
  /** It is YAML of a kind that is not read here. */
  | { readonly why: 'odd'; readonly message: string; readonly aliases: number }
  /** It is no YAML, or no single document. */
  | { readonly why: 'broken' | 'too deep'; readonly message: string; readonly offset: number };

/** Lists and maps in one another. Envoy reads no message that has more than 100 in one another either. */
export const deepestNesting = 100;

/** A byte order mark, or the end of a document: {@link readSimpleDocument} declines both. */
const oddText = /\uFEFF|^\.\.\./m;

/** An empty line after an escaped line end: YAML 1.2.2, 7.3.1 reads a line feed, parsers differ. */
const emptyLineAfterEscape = /\\\r?\n[ \t]*\r?\n/;

/** Reads one document; undefined when it is no map, odd or no YAML. */
export function parsePlainDocument(text: string): PlainDocument | undefined {
  const read = readPlainDocument(text);
  return 'why' in read ? undefined : read;
}

/**
 * Reads one document, or says why it is not read here.
 *
 * @param takesTabs the other parser is not to be asked: nobody will see where the two differ in what they take for a tab
 */
export function readPlainDocument(text: string, { takesTabs = false } = {}): PlainDocument | NotPlain {
  const simple = readSimpleDocument(text);
  if (simple === undefined) return readEvents(text, takesTabs);
  let read: PlainDocument | NotPlain | undefined;
  return {
    value: simple.value,
    offsetOf: (path) => {
      if (path.length === 0) return simple.start;
      read ??= readEvents(text, takesTabs);
      return 'why' in read ? undefined : read.offsetOf(path);
    },
  };
}

/** With a parser of all of YAML. */
export function readEvents(text: string, takesTabs = false): PlainDocument | NotPlain {
  let events: readonly Event[];
  try {
    events = parseEvents(text, { maxDepth: deepestNesting });
  } catch (error) {
    if (!(error instanceof YAMLException)) return { why: 'broken', message: String(error), offset: 0 };
    const { reason, mark } = error;
    const isTooDeep = reason.startsWith('nesting exceeded');
    return { why: isTooDeep ? 'too deep' : 'broken', message: reason, offset: mark?.position ?? 0 };
  }
  const odd = (message: string): NotPlain => {
    return { why: 'odd', message, aliases: events.filter(({ type }) => type === EVENT_ID.ALIAS).length };
  };
  if (!takesTabs && text.includes('\t')) return odd('a tab');
  if (oddText.test(text)) return odd('a byte order mark or "..."');
  if (events[1]?.type !== EVENT_ID.MAPPING) return odd('a value other than a map');
  try {
    const value = new PlainReader(text, events).read();
    let places: Places | undefined;
    return {
      value,
      offsetOf: (path) => {
        places ??= new Places(text, events);
        return places.offsetOf(path);
      },
    };
  } catch (error) {
    return odd(error instanceof Error ? error.message : String(error));
  }
}

/** Makes values of a parser's events; throws at what is odd: anchors, aliases, tags, directives, and keys of some kinds. */
class PlainReader {
  readonly #text: string;
  readonly #events: readonly Event[];
  #next = 0;

  constructor(text: string, events: readonly Event[]) {
    this.#text = text;
    this.#events = events;
  }

  read(): unknown {
    const document = this.#events[this.#next++];
    if (document?.type !== EVENT_ID.DOCUMENT || document.directives.length > 0) throw new Error('directives');
    const value = this.#value(this.#events[this.#next++]!);
    if (this.#next !== this.#events.length - 1) throw new Error('more than one document');
    return value;
  }

  #value(event: Event): unknown {
    if (event.type === EVENT_ID.DOCUMENT || event.type === EVENT_ID.ALIAS || event.type === EVENT_ID.POP) {
      throw new Error('an alias or a missing value');
    }
    if (event.anchorStart >= 0 || event.tagStart >= 0) throw new Error('an anchor or a tag');
    if (event.type === EVENT_ID.SCALAR) return this.#scalar(event);
    return event.type === EVENT_ID.SEQUENCE ? this.#list() : this.#map(event.style === COLLECTION_STYLE.BLOCK);
  }

  #scalar(event: ScalarEvent): unknown {
    const text = getScalarValue(this.#text, event);
    if (event.style === SCALAR_STYLE.PLAIN) {
      const { value } = CORE_SCHEMA.resolveImplicitScalarTag(text);
      if (isHugeNumber(text, value)) throw new Error('a huge number');
      return value;
    }
    const isEscaped = event.style === SCALAR_STYLE.DOUBLE_QUOTED;
    if (isEscaped && emptyLineAfterEscape.test(this.#text.slice(event.valueStart, event.valueEnd))) {
      throw new Error('an empty line after an escaped line end');
    }
    return text;
  }

  #list(): unknown[] {
    const list: unknown[] = [];
    for (let event = this.#events[this.#next++]!; event.type !== EVENT_ID.POP; event = this.#events[this.#next++]!) {
      list.push(this.#value(event));
    }
    return list;
  }

  #map(isBlock: boolean): Record<string, unknown> {
    const map: Record<string, unknown> = {};
    let isFirst = true;
    for (let event = this.#events[this.#next++]!; event.type !== EVENT_ID.POP; event = this.#events[this.#next++]!) {
      const key = event.type === EVENT_ID.SCALAR ? this.#value(event) : undefined;
      const isPlain = typeof key === 'number' || (typeof key === 'string' && key !== '<<' && key !== '__proto__');
      if (!isPlain || Object.hasOwn(map, key)) throw new Error('a duplicate key, or a key that is not a plain string');
      if (isBlock && !isFirst && !this.#beginsLine(event as ScalarEvent))
        throw new Error('a key after a value in one line');
      map[key] = this.#value(this.#events[this.#next++]!);
      isFirst = false;
    }
    return map;
  }

  /** The parser takes `- {}b: 1` as an item and a key of the map around the list; YAML does not. */
  #beginsLine({ valueStart, style }: ScalarEvent): boolean {
    let at = valueStart - (style === SCALAR_STYLE.PLAIN ? 1 : 2);
    while (this.#text.charCodeAt(at) === 0x20) at--;
    return at < 0 || this.#text.charCodeAt(at) === 0x0a;
  }
}

/** Where in a plain document its fields are. */
class Places {
  readonly #text: string;
  readonly #events: readonly Event[];
  /** By the index of a list's or map's event: the event behind its last. */
  readonly #ends: Int32Array;
  /** By the index of a list's event: those of its elements. */
  readonly #elements = new Map<number, readonly number[]>();

  constructor(text: string, events: readonly Event[]) {
    this.#text = text;
    this.#events = events;
    this.#ends = endsOf(events);
  }

  offsetOf(path: readonly (string | number)[]): number | undefined {
    let at = 1;
    let offset = this.#startOf(at);
    for (const key of path) {
      const { type } = this.#events[at]!;
      let found: number | undefined;
      if (type === EVENT_ID.MAPPING) {
        found = this.#keyIn(at, String(key));
        at = found === undefined ? at : found + 1;
      } else if (type === EVENT_ID.SEQUENCE && typeof key === 'number') {
        found = this.#elementsOf(at)[key];
        at = found ?? at;
      }
      if (found === undefined) break;
      offset = this.#startOf(found);
    }
    return offset;
  }

  /** Index of a key's event. Keys of plain documents are scalars. */
  #keyIn(map: number, key: string): number | undefined {
    for (let at = map + 1; this.#events[at]!.type !== EVENT_ID.POP; at = this.#behind(at + 1)) {
      const event = this.#events[at] as ScalarEvent;
      const text = getScalarValue(this.#text, event);
      const isPlain = event.style === SCALAR_STYLE.PLAIN;
      if (text === key || (isPlain && String(CORE_SCHEMA.resolveImplicitScalarTag(text).value) === key)) return at;
    }
    return undefined;
  }

  #elementsOf(list: number): readonly number[] {
    let elements = this.#elements.get(list);
    if (elements === undefined) {
      const found: number[] = [];
      for (let at = list + 1; this.#events[at]!.type !== EVENT_ID.POP; at = this.#behind(at)) found.push(at);
      elements = found;
      this.#elements.set(list, elements);
    }
    return elements;
  }

  #behind(at: number): number {
    return this.#ends[at] || at + 1;
  }

  #startOf(at: number): number | undefined {
    const event = this.#events[at]!;
    if (event.type === EVENT_ID.MAPPING || event.type === EVENT_ID.SEQUENCE) return event.start;
    // A value that is not there, or a text in lines of its own, begins where no event says.
    if (event.type !== EVENT_ID.SCALAR || event.valueStart < 0) return undefined;
    if (event.style === SCALAR_STYLE.PLAIN) return event.valueStart;
    const isQuoted = event.style === SCALAR_STYLE.SINGLE_QUOTED || event.style === SCALAR_STYLE.DOUBLE_QUOTED;
    return isQuoted ? event.valueStart - 1 : undefined;
  }
}

function endsOf(events: readonly Event[]): Int32Array {
  const ends = new Int32Array(events.length);
  const open: number[] = [];
  for (const [index, { type }] of events.entries()) {
    if (type === EVENT_ID.POP) ends[open.pop()!] = index + 1;
    else if (type !== EVENT_ID.SCALAR && type !== EVENT_ID.ALIAS) open.push(index);
  }
  return ends;
}
