/** Collects names from encoded messages without decoding them. */
import type { DescField, DescMessage } from '@bufbuild/protobuf';
import { messageNameOf } from '../../model/envoy-api/message-name.ts';
import { FieldCursor, lengthDelimited } from './field-cursor.ts';
import { packedType } from './packed-type.ts';

export interface NameSearch {
  /** Field numbers of names, by type name of the message. */
  readonly fields: Readonly<Record<string, readonly number[]>>;
  readonly skippedTypes: ReadonlySet<string>;
}

/** Content of a field: a name, a packed message, a message, or a map entry with known fields. */
type PlanStep = 'name' | 'packed' | DescMessage | Plan;
type Plan = ReadonlyMap<number, PlanStep>;

const anyType = 'google.protobuf.Any';
const mapValueField = 2;

export class NameCollector {
  readonly #search: NameSearch;
  readonly #plans = new Map<string, Plan>();
  readonly #packedSchemas = new Map<string, DescMessage | undefined>();

  constructor(search: NameSearch) {
    this.#search = search;
  }

  /**
   * Skips packed messages of unknown types.
   *
   * @param start offset of the message, which extends to the end of the bytes
   */
  collect(schema: DescMessage, bytes: Uint8Array, names: Set<string>, start = 0): void {
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#read(this.#planOf(schema), buffer, start, buffer.length, names);
  }

  #read(plan: Plan, buffer: Buffer, start: number, end: number, names: Set<string>): void {
    if (plan.size === 0) return;
    const cursor = new FieldCursor(buffer, start);
    while (cursor.position < end) {
      const tag = cursor.varint();
      const wireType = tag & 7;
      if (wireType !== lengthDelimited) {
        cursor.skip(wireType);
        continue;
      }
      const length = cursor.varint();
      const valueStart = cursor.position;
      // A message may continue in later chunks.
      const valueEnd = Math.min(valueStart + length, end);
      cursor.position = valueEnd;
      const step = plan.get(tag >>> 3);
      if (step === undefined) continue;
      if (step === 'name') {
        if (length > 0) names.add(buffer.toString('utf8', valueStart, valueEnd));
      } else if (step === 'packed') this.#readPacked(buffer, valueStart, valueEnd, names);
      else this.#read('typeName' in step ? this.#planOf(step) : step, buffer, valueStart, valueEnd, names);
    }
  }

  #readPacked(buffer: Buffer, start: number, end: number, names: Set<string>): void {
    const cursor = new FieldCursor(buffer, start);
    let schema: DescMessage | undefined;
    while (cursor.position < end) {
      const tag = cursor.varint();
      if ((tag & 7) !== lengthDelimited) return;
      const length = cursor.varint();
      const valueStart = cursor.position;
      cursor.position += length;
      if (tag >>> 3 === 1) schema = this.#schemaOf(buffer.toString('latin1', valueStart, valueStart + length));
      else if (schema !== undefined) this.#read(this.#planOf(schema), buffer, valueStart, valueStart + length, names);
    }
  }

  #schemaOf(typeUrl: string): DescMessage | undefined {
    const name = messageNameOf(typeUrl);
    if (this.#packedSchemas.has(name)) return this.#packedSchemas.get(name);
    const schema = packedType(typeUrl);
    // Unknown types are not cached, because users choose their names.
    if (schema !== undefined) this.#packedSchemas.set(name, schema);
    return schema;
  }

  #planOf(schema: DescMessage): Plan {
    let plan = this.#plans.get(schema.typeName);
    if (plan === undefined) {
      const namedFields = this.#search.fields[schema.typeName] ?? [];
      plan = new Map(
        schema.fields.flatMap((field) => {
          const step = namedFields.includes(field.number) ? 'name' : this.#planStepOf(field);
          return step === undefined ? [] : [[field.number, step] as const];
        }),
      );
      this.#plans.set(schema.typeName, plan);
    }
    return plan;
  }

  #planStepOf({ fieldKind, message }: DescField): PlanStep | undefined {
    if (message === undefined || this.#search.skippedTypes.has(message.typeName)) return undefined;
    const step = message.typeName === anyType ? 'packed' : message;
    return fieldKind === 'map' ? new Map([[mapValueField, step]]) : step;
  }
}
