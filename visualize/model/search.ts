import type { RecordList } from '../../src/debugger/trace/record-list.ts';
import type { TraceRecord } from '../../src/runtime/trace/trace.ts';
import { actionText } from './recording/words.ts';

/**
 * A typed query: `actor:supervisor kind:event config.changed "not ready"`. All terms must match. A term without a field matches any field, including
 * the payload; case is ignored.
 */
export interface TraceQuery {
  readonly text: string;
  readonly terms: readonly SearchTerm[];
}

interface SearchTerm {
  readonly field: Field | undefined;
  readonly text: string;
  /** `-word` negates the term. */
  readonly isNegated: boolean;
}

const fields = {
  actor: (record: TraceRecord) =>
    record.kind === 'event'
      ? `${record.from}\n${record.to}`
      : record.kind === 'spawn'
        ? `${record.actor}\n${record.parent ?? ''}`
        : record.actor,
  from: (record: TraceRecord) => (record.kind === 'event' || record.kind === 'transition' ? record.from : ''),
  to: (record: TraceRecord) => (record.kind === 'event' || record.kind === 'transition' ? record.to : ''),
  kind: (record: TraceRecord) => record.kind,
  event: (record: TraceRecord) => (record.kind === 'event' ? record.event.type : 'on' in record ? record.on : ''),
  state: (record: TraceRecord) =>
    record.kind === 'transition' ? `${record.from}\n${record.to}` : record.kind === 'timer-started' ? record.state : '',
  timer: (record: TraceRecord) => ('timer' in record ? record.timer : ''),
  seq: (record: TraceRecord) => String(record.seq),
} as const;

type Field = keyof typeof fields;

export const fieldNames = Object.keys(fields) as readonly Field[];

export function parseQuery(text: string): TraceQuery {
  const terms: SearchTerm[] = [];
  for (const [, minusSign, name, quotedText, plainText] of text.matchAll(/(-?)(?:(\w+):)?(?:"([^"]*)"?|(\S+))/g)) {
    const isField = name !== undefined && Object.hasOwn(fields, name.toLowerCase());
    // `xds:foo` contains no field name, so it is searched literally.
    const termText = `${isField || name === undefined ? '' : `${name}:`}${quotedText ?? plainText ?? ''}`.toLowerCase();
    if (termText === '') continue;
    terms.push({
      field: isField ? (name.toLowerCase() as Field) : undefined,
      text: termText,
      isNegated: minusSign === '-',
    });
  }
  return { text, terms };
}

export function matches({ terms }: TraceQuery, record: TraceRecord): boolean {
  let recordJson: string | undefined;
  for (const { field, text, isNegated } of terms) {
    if (field !== undefined) {
      if (hasField(record, field, text) === isNegated) return false;
      continue;
    }
    // Most terms are decided without the text of the payload, which is expensive.
    recordJson ??= `${actionText(record)} ${JSON.stringify(record)}`.toLowerCase();
    if (recordJson.includes(text) === isNegated) return false;
  }
  return true;
}

const contextChars = 24;

/** Shows why a record was found; `undefined` if its sentence contains the match. */
export function foundText({ terms }: TraceQuery, record: TraceRecord, sentence: string): SearchMatch | undefined {
  const sentenceText = sentence.toLowerCase();
  for (const { field, text, isNegated } of terms) {
    if (isNegated || field !== undefined || sentenceText.includes(text)) continue;
    const recordJson = JSON.stringify(record);
    const matchOffset = recordJson.toLowerCase().indexOf(text);
    if (matchOffset < 0) continue;
    const from = Math.max(0, matchOffset - contextChars);
    const to = matchOffset + text.length;
    return {
      textBefore: `${from > 0 ? '…' : ''}${recordJson.slice(from, matchOffset)}`,
      matchedText: recordJson.slice(matchOffset, to),
      textAfter: `${recordJson.slice(to, to + contextChars)}${to + contextChars < recordJson.length ? '…' : ''}`,
    };
  }
  return undefined;
}

export interface SearchMatch {
  readonly textBefore: string;
  readonly matchedText: string;
  readonly textAfter: string;
}

function hasField(record: TraceRecord, field: Field, text: string): boolean {
  const value = fields[field](record).toLowerCase();
  // Numbers and kinds must be equal: `kind:timer` does not match `timer-started`.
  return field === 'seq' || field === 'kind' ? value === text : value.includes(text);
}

/** A search reads a growing trace in slices, so that the page stays responsive. */
export class TraceSearch {
  readonly query: TraceQuery;
  readonly matchIndexes: number[] = [];
  #nextIndex = 0;

  constructor(query: TraceQuery) {
    this.query = query;
  }

  get searchedCount(): number {
    return this.#nextIndex;
  }

  /** Returns whether all records were searched. */
  advance(records: RecordList, shouldContinue: () => boolean): boolean {
    for (; this.#nextIndex < records.length; this.#nextIndex++) {
      if (this.#nextIndex % 256 === 255 && !shouldContinue()) {
        this.#searchFrom(records);
        this.#nextIndex++;
        return this.#nextIndex === records.length;
      }
      this.#searchFrom(records);
    }
    return true;
  }

  #searchFrom(records: RecordList): void {
    if (matches(this.query, records.recordAt(this.#nextIndex)!)) this.matchIndexes.push(this.#nextIndex);
  }
}
