/** What a generator hands over: one named xDS resource and what it was made from. */
import { type DescMessage, fromBinary, type Message } from '@bufbuild/protobuf';
import { type ConfigKey, configKeyText } from '../../model/config/config.ts';
import { wireForm } from './wire-form.ts';

/** A message within a larger one, and its bytes as they go into that, one after the other. */
export interface Part {
  readonly message: Message;
  readonly chunks: readonly Uint8Array[];
}

/**
 * A message until its bytes are asked for, its bytes from then on: what is sent to thousands is kept in the form in
 * which it is sent, and in no other.
 */
export class Encodable implements Part {
  readonly schema: DescMessage;
  #message: Message | undefined;
  #bytes: Uint8Array | undefined;

  constructor(schema: DescMessage, message: Message) {
    this.schema = schema;
    this.#message = message;
  }

  /** For those who look into it: made of the bytes again when they are all that is left. */
  get message(): Message {
    return this.#message ?? fromBinary(this.schema, this.bytes);
  }

  /** Whether bytes are all that is left. */
  get isEncoded(): boolean {
    return this.#bytes !== undefined;
  }

  get bytes(): Uint8Array {
    this.#bytes ??= this.encode(this.#message!);
    this.#message = undefined;
    return this.#bytes;
  }

  get chunks(): readonly Uint8Array[] {
    return [this.bytes];
  }

  /** Whoever copied the bytes into something larger says where they are now: they are kept once. */
  moveTo(bytes: Uint8Array): void {
    this.#bytes = bytes;
    this.#message = undefined;
  }

  protected encode(message: Message): Uint8Array {
    return wireForm(this.schema, message);
  }
}

/** What something was made from; a function where it takes a while to say and hardly anybody asks. */
export type DependsOn = readonly ConfigKey[] | (() => readonly ConfigKey[]);

export class Resource extends Encodable {
  readonly name: string;
  #dependsOn: DependsOn;

  constructor(name: string, schema: DescMessage, message: Message, dependsOn: DependsOn = []) {
    super(schema, message);
    this.name = name;
    this.#dependsOn = typeof dependsOn === 'function' ? dependsOn : withoutRepetitions(dependsOn);
  }

  /** The objects that it was made from: a change of none of them leaves it as it is. */
  get dependsOn(): readonly ConfigKey[] {
    if (typeof this.#dependsOn === 'function') this.#dependsOn = withoutRepetitions(this.#dependsOn());
    return this.#dependsOn;
  }
}

/** A message that has a `name`, as a resource. */
export function namedResource(
  schema: DescMessage,
  message: Message & { readonly name: string },
  dependsOn: readonly ConfigKey[] = [],
): Resource {
  return new Resource(message.name, schema, message, dependsOn);
}

/**
 * A resource whose items of one repeated field are encoded one by one, so that those that are the same in the next
 * resource are not encoded again.
 */
export class ResourceOfParts extends Resource {
  /** The repeated field that the parts are in. */
  readonly fieldNumber: number;
  readonly parts: readonly Part[];

  /** @param message all but the parts. */
  constructor(
    whole: { name: string; schema: DescMessage; message: Message; dependsOn: DependsOn },
    fieldNumber: number,
    parts: readonly Part[],
  ) {
    super(whole.name, whole.schema, whole.message, whole.dependsOn);
    this.fieldNumber = fieldNumber;
    this.parts = parts;
  }

  /** Before it is encoded the parts in it are the very ones that were made, so that it is known where they come from. */
  override get message(): Message {
    if (this.isEncoded) return super.message;
    const { localName } = this.schema.fields.find(({ number }) => number === this.fieldNumber)!;
    const whole = super.message;
    const copy = Object.create(Object.getPrototypeOf(whole)) as Message;
    return Object.assign(copy, whole, { [localName]: this.parts.map(({ message }) => message) });
  }

  /** Fields may come in any order; here the parts come last. */
  protected override encode(message: Message): Uint8Array {
    const chunks: Uint8Array[] = [wireForm(this.schema, message)];
    for (const part of this.parts) {
      const pieces = part.chunks;
      chunks.push(lengthDelimited(this.fieldNumber, totalLength(pieces)), ...pieces);
    }
    return Buffer.concat(chunks);
  }
}

function totalLength(pieces: readonly Uint8Array[]): number {
  return pieces.reduce((sum, { length }) => sum + length, 0);
}

/** Tag and length of a field that holds a message. */
function lengthDelimited(fieldNumber: number, length: number): Uint8Array {
  const bytes: number[] = [];
  for (let value of [(fieldNumber << 3) | 2, length]) {
    while (value > 127) {
      bytes.push((value & 127) | 128);
      value >>>= 7;
    }
    bytes.push(value);
  }
  return Uint8Array.from(bytes);
}

function withoutRepetitions(keys: readonly ConfigKey[]): readonly ConfigKey[] {
  return keys.length < 2 ? keys : [...new Map(keys.map((key) => [configKeyText(key), key])).values()];
}
