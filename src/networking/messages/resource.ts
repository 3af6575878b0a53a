import { type DescMessage, fromBinary, type Message } from '@bufbuild/protobuf';
import { type ConfigKey, configKeyText } from '../../model/config/config.ts';
import type { Part } from './part.ts';
import type { PartBlock } from './part-block.ts';
import { encodeDeterministically } from './wire-form.ts';

/** A message, until its encoding replaces it on first use. Messages for thousands of clients are thus not retained in both forms. */
export class Encodable implements Part {
  readonly schema: DescMessage;
  #message: Message | undefined;
  #bytes: Uint8Array | undefined;

  constructor(schema: DescMessage, message: Message) {
    this.schema = schema;
    this.#message = message;
  }

  get message(): Message {
    return this.#message ?? fromBinary(this.schema, this.#bytes!);
  }

  get isEncoded(): boolean {
    return this.#bytes !== undefined;
  }

  get bytes(): Uint8Array {
    this.#bytes ??= encodeDeterministically(this.schema, this.#message!);
    this.#message = undefined;
    return this.#bytes;
  }

  get retainedBytes(): number {
    return this.#bytes?.length ?? 0;
  }

  get chunks(): readonly Uint8Array[] {
    return [this.bytes];
  }

  /** Replaces the bytes by an equal range of a larger buffer. */
  moveTo(bytes: Uint8Array): void {
    this.#bytes = bytes;
    this.#message = undefined;
  }
}

export type PartToEncode = Pick<Encodable, 'bytes'>;

/** A function if the keys are expensive to determine and rarely needed. */
export type DependsOn = readonly ConfigKey[] | (() => readonly ConfigKey[]);

export class EnvoyResource extends Encodable {
  readonly name: string;
  #dependsOn: DependsOn;

  constructor(name: string, schema: DescMessage, message: Message, dependsOn: DependsOn = []) {
    super(schema, message);
    this.name = name;
    this.#dependsOn = typeof dependsOn === 'function' ? dependsOn : withoutRepetitions(dependsOn);
  }

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

export class ResourceOfParts extends EnvoyResource {
  readonly blocks: readonly PartBlock[];

  /** @param init.message contains all fields except the repeated field */
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

  get rest(): Message {
    return super.message;
  }

  /** Contains the original parts, with their origins, until they are encoded. */
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

  /** The parts follow the other fields, because Protobuf allows any order of fields. */
  override get chunks(): readonly Uint8Array[] {
    return [super.bytes, ...this.blocks.map(({ bytes }) => bytes)];
  }

  /** Concatenated on each call, because only the blocks are cached. */
  override get bytes(): Uint8Array {
    return Buffer.concat(this.chunks);
  }
}

function withoutRepetitions(keys: readonly ConfigKey[]): readonly ConfigKey[] {
  return keys.length < 2 ? keys : [...new Map(keys.map((key) => [configKeyText(key), key])).values()];
}
