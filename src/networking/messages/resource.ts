/** The result of a generator: a named xDS resource and the objects that it depends on. */
import { type DescMessage, fromBinary, type Message } from '@bufbuild/protobuf';
import { type ConfigKey, configKeyText } from '../../model/config/config.ts';
import type { Part } from './part.ts';
import type { PartBlock } from './part-block.ts';
import { wireForm } from './wire-form.ts';

/**
 * A message that is replaced with its bytes once they are requested. Messages sent to thousands of clients are only
 * kept in encoded form.
 */
export class Encodable implements Part {
  readonly schema: DescMessage;
  #message: Message | undefined;
  #bytes: Uint8Array | undefined;

  constructor(schema: DescMessage, message: Message) {
    this.schema = schema;
    this.#message = message;
  }

  /** Decodes the bytes if the message was released. */
  get message(): Message {
    return this.#message ?? fromBinary(this.schema, this.#bytes!);
  }

  /** Whether only the bytes are kept. */
  get isEncoded(): boolean {
    return this.#bytes !== undefined;
  }

  get bytes(): Uint8Array {
    this.#bytes ??= wireForm(this.schema, this.#message!);
    this.#message = undefined;
    return this.#bytes;
  }

  /** Size of the kept encoding. */
  get bytesKept(): number {
    return this.#bytes?.length ?? 0;
  }

  get chunks(): readonly Uint8Array[] {
    return [this.bytes];
  }

  /** The bytes were copied into a larger buffer, which is kept instead. */
  moveTo(bytes: Uint8Array): void {
    this.#bytes = bytes;
    this.#message = undefined;
  }
}

/** Parts that are encoded before the resource that contains them. */
export type AheadPart = Pick<Encodable, 'bytes'>;

/** Keys of the objects that a value depends on. A function if computing them is slow and rarely needed. */
export type DependsOn = readonly ConfigKey[] | (() => readonly ConfigKey[]);

export class EnvoyResource extends Encodable {
  readonly name: string;
  #dependsOn: DependsOn;

  constructor(name: string, schema: DescMessage, message: Message, dependsOn: DependsOn = []) {
    super(schema, message);
    this.name = name;
    this.#dependsOn = typeof dependsOn === 'function' ? dependsOn : withoutRepetitions(dependsOn);
  }

  /** Changes of other objects do not affect the resource. */
  get dependsOn(): readonly ConfigKey[] {
    if (typeof this.#dependsOn === 'function') this.#dependsOn = withoutRepetitions(this.#dependsOn());
    return this.#dependsOn;
  }
}

export function namedResource(
  schema: DescMessage,
  message: Message & { readonly name: string },
  dependsOn: readonly ConfigKey[] = [],
): EnvoyResource {
  return new EnvoyResource(message.name, schema, message, dependsOn);
}

/**
 * A resource that encodes the items of one repeated field in blocks. Blocks that other resources contain are encoded
 * and kept once.
 */
export class ResourceOfParts extends EnvoyResource {
  readonly blocks: readonly PartBlock[];

  /** @param message all fields except the parts */
  constructor(
    init: { name: string; schema: DescMessage; message: Message; dependsOn: DependsOn },
    blocks: readonly PartBlock[],
  ) {
    super(init.name, init.schema, init.message, init.dependsOn);
    this.blocks = blocks;
  }

  get parts(): readonly Part[] {
    return this.blocks.flatMap(({ parts }) => parts);
  }

  /** The message without its parts. */
  get rest(): Message {
    return super.message;
  }

  /** Contains the original parts until they are encoded, so that their origins are known. */
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

  /** Fields may be encoded in any order. The parts come last. */
  override get chunks(): readonly Uint8Array[] {
    return [super.bytes, ...this.blocks.map(({ bytes }) => bytes)];
  }

  /** Concatenated on each call, because the bytes are kept in blocks. */
  override get bytes(): Uint8Array {
    return Buffer.concat(this.chunks);
  }
}

function withoutRepetitions(keys: readonly ConfigKey[]): readonly ConfigKey[] {
  return keys.length < 2 ? keys : [...new Map(keys.map((key) => [configKeyText(key), key])).values()];
}
