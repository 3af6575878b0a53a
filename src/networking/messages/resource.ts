/** What a generator hands over: one named xDS resource and what it was made from. */
import { type DescMessage, fromBinary, type Message } from '@bufbuild/protobuf';
import { type ConfigKey, configKeyText } from '../../model/config/config.ts';
import type { Part } from './part.ts';
import type { PartBlock } from './part-block.ts';
import { wireForm } from './wire-form.ts';

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

  /** The message, for whoever looks into it: made of the bytes again when they are all that is left. */
  get message(): Message {
    return this.#message ?? fromBinary(this.schema, this.#bytes!);
  }

  /** Whether bytes are all that is left. */
  get isEncoded(): boolean {
    return this.#bytes !== undefined;
  }

  get bytes(): Uint8Array {
    this.#bytes ??= wireForm(this.schema, this.#message!);
    this.#message = undefined;
    return this.#bytes;
  }

  /** How many bytes it holds by now. */
  get bytesKept(): number {
    return this.#bytes?.length ?? 0;
  }

  get chunks(): readonly Uint8Array[] {
    return [this.bytes];
  }

  /** The bytes were copied into something larger, and are here now: they are kept once. */
  moveTo(bytes: Uint8Array): void {
    this.#bytes = bytes;
    this.#message = undefined;
  }
}

/** What is encoded before a resource is that it is part of. */
export type AheadPart = Pick<Encodable, 'bytes'>;

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
 * A resource whose items of one repeated field are encoded block by block, so that blocks that are the same in another
 * resource are neither encoded nor kept again.
 */
export class ResourceOfParts extends Resource {
  readonly blocks: readonly PartBlock[];

  /** @param message all but the parts. */
  constructor(
    whole: { name: string; schema: DescMessage; message: Message; dependsOn: DependsOn },
    blocks: readonly PartBlock[],
  ) {
    super(whole.name, whole.schema, whole.message, whole.dependsOn);
    this.blocks = blocks;
  }

  get parts(): readonly Part[] {
    return this.blocks.flatMap(({ parts }) => parts);
  }

  /** The message without its parts. */
  get rest(): Message {
    return super.message;
  }

  /** The parts in it are the very ones that were made, as long as they are not encoded: so it is known where they come from. */
  override get message(): Message {
    const { rest } = this;
    const copy = Object.assign(Object.create(Object.getPrototypeOf(rest)) as Message, rest);
    for (const [fieldNumber, blocks] of Map.groupBy(this.blocks, (block) => block.fieldNumber)) {
      const { localName } = this.schema.fields.find(({ number }) => number === fieldNumber)!;
      const messages = blocks.flatMap(({ parts }) => parts.map(({ message }) => message));
      Object.assign(copy, { [localName]: messages });
    }
    return copy;
  }

  /** Fields may come in any order; here the parts come last. */
  override get chunks(): readonly Uint8Array[] {
    return [super.bytes, ...this.blocks.map(({ bytes }) => bytes)];
  }

  /** The bytes in one piece, made for whoever asks: they are kept in blocks. */
  override get bytes(): Uint8Array {
    return Buffer.concat(this.chunks);
  }
}

function withoutRepetitions(keys: readonly ConfigKey[]): readonly ConfigKey[] {
  return keys.length < 2 ? keys : [...new Map(keys.map((key) => [configKeyText(key), key])).values()];
}
