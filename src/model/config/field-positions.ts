/** Where in a file the field of an object was written. */
import {
  type Position,
  parseYamlDocument,
  splitDocuments,
  type TextPart,
  type YamlDocument,
} from '../yaml/yaml-document.ts';
import type { SourcePosition } from './config.ts';

export class FieldPositions {
  readonly #textOf: (file: string) => string;
  readonly #parts = new Map<string, readonly TextPart[]>();
  /** The document that was asked for last: fields of one object are asked for one after the other. */
  #last: { readonly part: TextPart; readonly document: YamlDocument } | undefined;

  /** @param textOf the text of a file; empty where it cannot be read */
  constructor(textOf: (file: string) => string) {
    this.#textOf = textOf;
  }

  /**
   * @param source of the object
   * @param field `spec.http[2]`; empty: the object as a whole
   */
  of({ file, line }: SourcePosition, field: string): Position {
    const part = this.#partsOf(file).findLast((candidate) => candidate.line <= line);
    if (part === undefined) return { line, column: 1 };
    if (this.#last?.part !== part) this.#last = { part, document: parseYamlDocument(part) };
    const { document } = this.#last;
    // An object in a List is one of its items.
    const { items } = (document.value ?? {}) as { items?: readonly unknown[] };
    const index = items?.findIndex((_, item) => document.positionOf(`items[${item}]`).line === line) ?? -1;
    const prefix = index === -1 ? '' : `items[${index}]`;
    return document.positionOf([prefix, field].filter(Boolean).join('.'));
  }

  #partsOf(file: string): readonly TextPart[] {
    const known = this.#parts.get(file) ?? splitDocuments(this.#textOf(file));
    this.#parts.set(file, known);
    return known;
  }
}
