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
} from 'js-yaml';

export interface PlainDocument {
  readonly value: unknown;
  /** Offset of the map that the document is. */
  readonly start: number;
  /** Offsets of the elements of the list `items` at the top; undefined for each that is no map. */
  itemStarts(): readonly (number | undefined)[];
}

/** A byte order mark, tabs, a document's end in so many dots, and numbers that no number can hold. */
const oddText = /[\uFEFF\t]|^\.\.\.|\d[eE]\+?\d{3}|\d{300}/m;

/** Reads one document; undefined when it is no map, odd or no YAML. */
export function parsePlainDocument(text: string): PlainDocument | undefined {
  if (oddText.test(text)) return undefined;
  try {
    const events = parseEvents(text, {});
    const root = events[1];
    if (root?.type !== EVENT_ID.MAPPING) return undefined;
    const value = new PlainReader(text, events).read();
    return { value, start: root.start, itemStarts: () => itemStarts(events, text) };
  } catch {
    // The other parser says what is wrong.
    return undefined;
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
      throw new Error('an alias, or a value is missing');
    }
    if (event.anchorStart >= 0 || event.tagStart >= 0) throw new Error('an anchor or a tag');
    if (event.type === EVENT_ID.SCALAR) return this.#scalar(event);
    return event.type === EVENT_ID.SEQUENCE ? this.#list() : this.#map(event.style === COLLECTION_STYLE.BLOCK);
  }

  #scalar(event: ScalarEvent): unknown {
    const text = getScalarValue(this.#text, event);
    return event.style === SCALAR_STYLE.PLAIN ? CORE_SCHEMA.resolveImplicitScalarTag(text).value : text;
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
      if (!isPlain || Object.hasOwn(map, key)) throw new Error('an odd key, or one that is given twice');
      if (isBlock && !isFirst && !this.#beginsLine(event as ScalarEvent)) throw new Error('a key behind a value');
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

function itemStarts(events: readonly Event[], text: string): readonly (number | undefined)[] {
  const starts: (number | undefined)[] = [];
  // Document and map are open at depth 2; a key of the map and its value alternate there.
  let depth = 0;
  let isKey = true;
  let inItems = false;
  let key = '';
  for (const event of events) {
    if (event.type === EVENT_ID.POP) {
      depth--;
      if (depth === 2) inItems = false;
      continue;
    }
    if (depth === 2) {
      if (isKey) key = event.type === EVENT_ID.SCALAR ? text.slice(event.valueStart, event.valueEnd) : '';
      else inItems = key === 'items' && event.type === EVENT_ID.SEQUENCE;
      isKey = !isKey;
    } else if (depth === 3 && inItems) starts.push(startOf(event));
    if (event.type !== EVENT_ID.SCALAR && event.type !== EVENT_ID.ALIAS) depth++;
  }
  return starts;
}

function startOf(event: Event): number | undefined {
  return event.type === EVENT_ID.MAPPING ? event.start : undefined;
}
