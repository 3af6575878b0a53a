/** Parses plain YAML documents, five times as fast as the full parser. */
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
  /** The offset of a field, or of its deepest existing parent; `undefined` if only the full parser can determine it. */
  offsetOf(path: readonly (string | number)[]): number | undefined;
}

export type ReadFailure =
  /** Valid YAML with features that this parser does not support. */
  | { readonly reason: 'odd'; readonly message: string; readonly aliases: number }
  | { readonly reason: 'broken' | 'too deep'; readonly message: string; readonly offset: number };

/** Envoy also accepts at most 100 levels in a message. */
export const maxNesting = 100;

/** A byte order mark, or a document end; {@link readSimpleDocument} declines both. */
const unsupportedTextPattern = /\uFEFF|^\.\.\./m;

/** An empty line after an escaped line break. YAML 1.2.2, 7.3.1 defines it as a line feed, but parsers differ. */
const emptyLineAfterEscape = /\\\r?\n[ \t]*\r?\n/;

export function parsePlainDocument(text: string): PlainDocument | undefined {
  const readResult = readPlainDocument(text);
  return 'reason' in readResult ? undefined : readResult;
}

/** @param acceptsTabs accepts tabs, which parsers treat differently; only if the full parser will not be used */
export function readPlainDocument(text: string, { acceptsTabs = false } = {}): PlainDocument | ReadFailure {
  const simpleDocument = readSimpleDocument(text);
  if (simpleDocument === undefined) return readEvents(text, acceptsTabs);
  let readResult: PlainDocument | ReadFailure | undefined;
  return {
    value: simpleDocument.value,
    offsetOf: (path) => {
      if (path.length === 0) return simpleDocument.start;
      readResult ??= readEvents(text, acceptsTabs);
      return 'reason' in readResult ? undefined : readResult.offsetOf(path);
    },
  };
}

export function readEvents(text: string, acceptsTabs = false): PlainDocument | ReadFailure {
  let events: readonly Event[];
  try {
    events = parseEvents(text, { maxDepth: maxNesting });
  } catch (error) {
    if (!(error instanceof YAMLException)) return { reason: 'broken', message: String(error), offset: 0 };
    const { reason, mark } = error;
    const isTooDeep = reason.startsWith('nesting exceeded');
    return { reason: isTooDeep ? 'too deep' : 'broken', message: reason, offset: mark?.position ?? 0 };
  }
  const unsupportedResult = (message: string): ReadFailure => {
    return { reason: 'odd', message, aliases: events.filter(({ type }) => type === EVENT_ID.ALIAS).length };
  };
  if (!acceptsTabs && text.includes('\t')) return unsupportedResult('a tab');
  if (unsupportedTextPattern.test(text)) return unsupportedResult('a byte order mark or "..."');
  if (events[1]?.type !== EVENT_ID.MAPPING) return unsupportedResult('a value other than a map');
  try {
    const value = new PlainReader(text, events).read();
    let offsetsByPath: ValueOffsets | undefined;
    return {
      value,
      offsetOf: (path) => {
        offsetsByPath ??= new ValueOffsets(text, events);
        return offsetsByPath.offsetOf(path);
      },
    };
  } catch (error) {
    return unsupportedResult(error instanceof Error ? error.message : String(error));
  }
}

/** Throws on unusual input: anchors, aliases, tags, directives, and some kinds of keys. */
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
    const value = this.#readValue(this.#events[this.#next++]!);
    if (this.#next !== this.#events.length - 1) throw new Error('more than one document');
    return value;
  }

  #readValue(event: Event): unknown {
    if (event.type === EVENT_ID.DOCUMENT || event.type === EVENT_ID.ALIAS || event.type === EVENT_ID.POP) {
      throw new Error('an alias or a missing value');
    }
    if (event.anchorStart >= 0 || event.tagStart >= 0) throw new Error('an anchor or a tag');
    if (event.type === EVENT_ID.SCALAR) return this.#readScalar(event);
    return event.type === EVENT_ID.SEQUENCE ? this.#readList() : this.#readMap(event.style === COLLECTION_STYLE.BLOCK);
  }

  #readScalar(event: ScalarEvent): unknown {
    const text = getScalarValue(this.#text, event);
    if (event.style === SCALAR_STYLE.PLAIN) {
      const { value } = CORE_SCHEMA.resolveImplicitScalarTag(text);
      if (isHugeNumber(text, value)) throw new Error('a huge number');
      return value;
    }
    const isDoubleQuoted = event.style === SCALAR_STYLE.DOUBLE_QUOTED;
    if (isDoubleQuoted && emptyLineAfterEscape.test(this.#text.slice(event.valueStart, event.valueEnd))) {
      throw new Error('an empty line after an escaped line end');
    }
    return text;
  }

  #readList(): unknown[] {
    const list: unknown[] = [];
    for (let event = this.#events[this.#next++]!; event.type !== EVENT_ID.POP; event = this.#events[this.#next++]!) {
      list.push(this.#readValue(event));
    }
    return list;
  }

  #readMap(isBlock: boolean): Record<string, unknown> {
    const map: Record<string, unknown> = {};
    let isFirst = true;
    for (let event = this.#events[this.#next++]!; event.type !== EVENT_ID.POP; event = this.#events[this.#next++]!) {
      const key = event.type === EVENT_ID.SCALAR ? this.#readValue(event) : undefined;
      const isPlainKey = typeof key === 'number' || (typeof key === 'string' && key !== '<<' && key !== '__proto__');
      if (!isPlainKey || Object.hasOwn(map, key))
        throw new Error('a duplicate key, or a key that is not a plain string');
      if (isBlock && !isFirst && !this.#isAtLineStart(event as ScalarEvent))
        throw new Error('a key after a value in one line');
      map[key] = this.#readValue(this.#events[this.#next++]!);
      isFirst = false;
    }
    return map;
  }

  /** The parser reads `- {}b: 1` as an item and a key of the enclosing map, which is invalid YAML. */
  #isAtLineStart({ valueStart, style }: ScalarEvent): boolean {
    let charIndex = valueStart - (style === SCALAR_STYLE.PLAIN ? 1 : 2);
    while (this.#text.charCodeAt(charIndex) === 0x20) charIndex--;
    return charIndex < 0 || this.#text.charCodeAt(charIndex) === 0x0a;
  }
}

class ValueOffsets {
  readonly #text: string;
  readonly #events: readonly Event[];
  /** Index after the last event of a list or map, by the index of its first event. */
  readonly #endIndexes: Int32Array;
  readonly #elements = new Map<number, readonly number[]>();

  constructor(text: string, events: readonly Event[]) {
    this.#text = text;
    this.#events = events;
    this.#endIndexes = endIndexesOf(events);
  }

  offsetOf(path: readonly (string | number)[]): number | undefined {
    let eventIndex = 1;
    let offset = this.#startOf(eventIndex);
    for (const key of path) {
      const { type } = this.#events[eventIndex]!;
      let childIndex: number | undefined;
      if (type === EVENT_ID.MAPPING) {
        childIndex = this.#keyEventIn(eventIndex, String(key));
        eventIndex = childIndex === undefined ? eventIndex : childIndex + 1;
      } else if (type === EVENT_ID.SEQUENCE && typeof key === 'number') {
        childIndex = this.#elementsOf(eventIndex)[key];
        eventIndex = childIndex ?? eventIndex;
      }
      if (childIndex === undefined) break;
      offset = this.#startOf(childIndex);
    }
    return offset;
  }

  #keyEventIn(map: number, key: string): number | undefined {
    for (
      let eventIndex = map + 1;
      this.#events[eventIndex]!.type !== EVENT_ID.POP;
      eventIndex = this.#endOf(eventIndex + 1)
    ) {
      const event = this.#events[eventIndex] as ScalarEvent;
      const text = getScalarValue(this.#text, event);
      const isPlain = event.style === SCALAR_STYLE.PLAIN;
      if (text === key || (isPlain && String(CORE_SCHEMA.resolveImplicitScalarTag(text).value) === key))
        return eventIndex;
    }
    return undefined;
  }

  #elementsOf(list: number): readonly number[] {
    let elements = this.#elements.get(list);
    if (elements === undefined) {
      const elementIndexes: number[] = [];
      for (
        let eventIndex = list + 1;
        this.#events[eventIndex]!.type !== EVENT_ID.POP;
        eventIndex = this.#endOf(eventIndex)
      )
        elementIndexes.push(eventIndex);
      elements = elementIndexes;
      this.#elements.set(list, elements);
    }
    return elements;
  }

  #endOf(eventIndex: number): number {
    return this.#endIndexes[eventIndex] || eventIndex + 1;
  }

  #startOf(eventIndex: number): number | undefined {
    const event = this.#events[eventIndex]!;
    if (event.type === EVENT_ID.MAPPING || event.type === EVENT_ID.SEQUENCE) return event.start;
    if (event.type !== EVENT_ID.SCALAR || event.valueStart < 0) return undefined;
    if (event.style === SCALAR_STYLE.PLAIN) return event.valueStart;
    const isQuoted = event.style === SCALAR_STYLE.SINGLE_QUOTED || event.style === SCALAR_STYLE.DOUBLE_QUOTED;
    return isQuoted ? event.valueStart - 1 : undefined;
  }
}

function endIndexesOf(events: readonly Event[]): Int32Array {
  const endIndexes = new Int32Array(events.length);
  const openEvents: number[] = [];
  for (const [index, { type }] of events.entries()) {
    if (type === EVENT_ID.POP) endIndexes[openEvents.pop()!] = index + 1;
    else if (type !== EVENT_ID.SCALAR && type !== EVENT_ID.ALIAS) openEvents.push(index);
  }
  return endIndexes;
}
