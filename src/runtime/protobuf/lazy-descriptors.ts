/**
 * Descriptors of generated messages that are built on first use. Building all of them takes a third of the CPU time of a start and 5 MB; a start that
 * serves one sidecar needs few of them.
 *
 * Generated files (`src/gen`) import this instead of `fileDesc` of `@bufbuild/protobuf/codegenv2`: `proto/generate.ts` writes the outline of each
 * file next to its descriptor.
 */
import {
  createFileRegistry,
  type DescEnum,
  type DescExtension,
  type DescField,
  type DescFile,
  type DescMessage,
  type DescMethod,
  type DescService,
  fromBinary,
  isFieldSet,
} from '@bufbuild/protobuf';
import type { GenFile } from '@bufbuild/protobuf/codegenv2';
import { protoCamelCase } from '@bufbuild/protobuf/reflect';
import { base64Decode } from '@bufbuild/protobuf/wire';
import { type DescriptorProto, FieldDescriptorProtoSchema, FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';

/** A message with its nested messages (except map entries) and enums, in file order. */
export type MessageOutline = readonly [name: string, messages?: readonly MessageOutline[], enums?: readonly string[]];

export interface FileOutline {
  readonly name: string;
  readonly package: string;
  readonly messages: readonly MessageOutline[];
  readonly enums: readonly string[];
  /** Whether the file declares services or extensions, which are read with the descriptor. */
  readonly more: boolean;
}

/**
 * The descriptor is read when one of its types is first inspected.
 * @param descriptor base64 of the FileDescriptorProto as protoc-gen-es writes it: without dependencies and derived JSON names
 * @param imports in the order of the file
 */
export function lazyFileDesc(outline: FileOutline, descriptor: string, imports: readonly DescFile[]): GenFile {
  return new LazyFile(outline, descriptor, imports) as unknown as GenFile;
}

class LazyFile {
  readonly kind = 'file';
  readonly name: string;
  readonly messages: LazyMessage[];
  readonly enums: LazyEnum[];
  readonly dependencies: readonly DescFile[];
  /** Passed to importing files while these are built. Contains the types of this file by name, without building them. */
  readonly asImport: DescFile;
  readonly #outline: FileOutline;
  readonly #descriptor: string;
  #loadedFile: DescFile | undefined;

  constructor(outline: FileOutline, descriptor: string, imports: readonly DescFile[]) {
    this.#outline = outline;
    this.#descriptor = descriptor;
    this.name = outline.name.replace(/\.proto$/, '');
    this.dependencies = imports;
    this.messages = outline.messages.map(
      (messageProto) => new LazyMessage(this, undefined, outline.package, messageProto),
    );
    this.enums = outline.enums.map((enumProto) => new LazyEnum(this, undefined, outline.package, enumProto));
    const { kind, name, messages, enums } = this;
    const noMembers = { dependencies: [], extensions: [], services: [] };
    this.asImport = { kind, name, proto: { name: outline.name }, messages, enums, ...noMembers } as unknown as DescFile;
  }

  get extensions(): readonly DescExtension[] {
    return this.#outline.more ? this.load().extensions : [];
  }

  get services(): readonly DescService[] {
    return this.#outline.more ? this.load().services : [];
  }

  get proto(): DescFile['proto'] {
    return this.load().proto;
  }

  get edition(): DescFile['edition'] {
    return this.load().edition;
  }

  get deprecated(): boolean {
    return this.load().deprecated;
  }

  toString(): string {
    return `file ${this.#outline.name}`;
  }

  /** The file as protobuf-es builds it; its types are moved into those of this file. */
  load(): DescFile {
    this.#loadedFile ??= this.#build();
    return this.#loadedFile;
  }

  #build(): DescFile {
    const proto = fromBinary(FileDescriptorProtoSchema, base64Decode(this.#descriptor));
    for (const message of proto.messageType) restoreJsonNames(message);
    const imports = new Map(this.dependencies.map((file) => [nameOf(file), asImport(file)]));
    proto.dependency = [...imports.keys()];
    const builtFile = createFileRegistry(proto, (name) => imports.get(name)).getFile(proto.name)!;
    const lazyTypes = new Map<Type, LazyType>();
    for (const [index, message] of this.messages.entries()) message.pairTypes(builtFile.messages[index]!, lazyTypes);
    for (const [index, lazyEnum] of this.enums.entries()) lazyTypes.set(builtFile.enums[index]!, lazyEnum);
    for (const [from, to] of lazyTypes) to.adoptBuilt(from as DescMessage & DescEnum, lazyTypes);
    for (const extension of builtFile.extensions) redirectReferences(extension, lazyTypes);
    for (const service of builtFile.services) {
      for (const method of service.methods as Mutable<DescMethod>[]) {
        method.input = lazyTypeOf(method.input, lazyTypes);
        method.output = lazyTypeOf(method.output, lazyTypes);
      }
    }
    return builtFile;
  }
}

class LazyMessage {
  readonly kind = 'message';
  readonly nestedExtensions: readonly DescExtension[] = [];
  readonly name: string;
  readonly typeName: string;
  readonly file: LazyFile;
  readonly parent: LazyMessage | undefined;
  readonly nestedMessages: LazyMessage[];
  readonly nestedEnums: LazyEnum[];

  constructor(
    file: LazyFile,
    parent: LazyMessage | undefined,
    scope: string,
    [name, messages = [], enums = []]: MessageOutline,
  ) {
    this.file = file;
    this.parent = parent;
    this.name = name;
    this.typeName = typeNameOf(scope, name);
    this.nestedMessages = messages.map((messageProto) => new LazyMessage(file, this, this.typeName, messageProto));
    this.nestedEnums = enums.map((enumProto) => new LazyEnum(file, this, this.typeName, enumProto));
  }

  get fields(): DescMessage['fields'] {
    return this.#builtValue('fields');
  }

  get field(): DescMessage['field'] {
    return this.#builtValue('field');
  }

  get oneofs(): DescMessage['oneofs'] {
    return this.#builtValue('oneofs');
  }

  get members(): DescMessage['members'] {
    return this.#builtValue('members');
  }

  get proto(): DescMessage['proto'] {
    return this.#builtValue('proto');
  }

  get deprecated(): boolean {
    return this.#builtValue('deprecated');
  }

  toString(): string {
    return `message ${this.typeName}`;
  }

  pairTypes(builtMessage: DescMessage, lazyTypes: Map<Type, LazyType>): void {
    lazyTypes.set(builtMessage, this);
    for (const [index, message] of this.nestedMessages.entries())
      message.pairTypes(builtMessage.nestedMessages[index]!, lazyTypes);
    for (const [index, lazyEnum] of this.nestedEnums.entries())
      lazyTypes.set(builtMessage.nestedEnums[index]!, lazyEnum);
  }

  adoptBuilt(builtMessage: DescMessage, lazyTypes: ReadonlyMap<Type, LazyType>): void {
    const self = this as unknown as DescMessage;
    for (const field of builtMessage.fields) {
      (field as Mutable<DescField>).parent = self;
      redirectReferences(field, lazyTypes);
    }
    for (const oneof of builtMessage.oneofs as Mutable<DescMessage['oneofs'][number]>[]) oneof.parent = self;
    copyProperties(this, builtMessage, ['fields', 'field', 'oneofs', 'members', 'proto', 'deprecated']);
  }

  /** Building the file replaces these accessors with its values. */
  #builtValue<Name extends keyof DescMessage>(name: Name): DescMessage[Name] {
    this.file.load();
    return (this as unknown as DescMessage)[name];
  }
}

class LazyEnum {
  readonly kind = 'enum';
  readonly name: string;
  readonly typeName: string;
  readonly file: LazyFile;
  readonly parent: LazyMessage | undefined;

  constructor(file: LazyFile, parent: LazyMessage | undefined, scope: string, name: string) {
    this.file = file;
    this.parent = parent;
    this.name = name;
    this.typeName = typeNameOf(scope, name);
  }

  get values(): DescEnum['values'] {
    return this.#builtValue('values');
  }

  get value(): DescEnum['value'] {
    return this.#builtValue('value');
  }

  get open(): boolean {
    return this.#builtValue('open');
  }

  get sharedPrefix(): string | undefined {
    return this.#builtValue('sharedPrefix');
  }

  get proto(): DescEnum['proto'] {
    return this.#builtValue('proto');
  }

  get deprecated(): boolean {
    return this.#builtValue('deprecated');
  }

  toString(): string {
    return `enum ${this.typeName}`;
  }

  adoptBuilt(builtEnum: DescEnum): void {
    const self = this as unknown as DescEnum;
    for (const value of builtEnum.values as Mutable<DescEnum['values'][number]>[]) value.parent = self;
    copyProperties(this, builtEnum, ['values', 'value', 'open', 'sharedPrefix', 'proto', 'deprecated']);
  }

  #builtValue<Name extends keyof DescEnum>(name: Name): DescEnum[Name] {
    this.file.load();
    return (this as unknown as DescEnum)[name];
  }
}

type Mutable<Desc> = { -readonly [Name in keyof Desc]: Desc[Name] };
type Type = DescMessage | DescEnum;
type LazyType = LazyMessage | LazyEnum;

function redirectReferences(field: DescField | DescExtension, lazyTypes: ReadonlyMap<Type, LazyType>): void {
  const changeableField = field as { message?: DescMessage | undefined; enum?: DescEnum | undefined };
  if (changeableField.message !== undefined) changeableField.message = lazyTypeOf(changeableField.message, lazyTypes);
  if (changeableField.enum !== undefined) changeableField.enum = lazyTypeOf(changeableField.enum, lazyTypes);
}

function lazyTypeOf<Desc extends Type>(builtType: Desc, lazyTypes: ReadonlyMap<Type, LazyType>): Desc {
  return (lazyTypes.get(builtType) as unknown as Desc | undefined) ?? builtType;
}

function copyProperties<Desc extends Type>(target: LazyType, from: Desc, names: readonly (keyof Desc)[]): void {
  for (const name of names) Object.defineProperty(target, name, { value: from[name], enumerable: true });
}

function typeNameOf(scope: string, name: string): string {
  return scope === '' ? name : `${scope}.${name}`;
}

function nameOf(file: DescFile): string {
  return file instanceof LazyFile ? file.asImport.proto.name : file.proto.name;
}

function asImport(file: DescFile): DescFile {
  return file instanceof LazyFile ? file.asImport : file;
}

/** protoc-gen-es omits JSON names that follow from the field names. */
function restoreJsonNames(message: DescriptorProto): void {
  for (const field of message.field) {
    if (!isFieldSet(field, FieldDescriptorProtoSchema.field.jsonName)) field.jsonName = protoCamelCase(field.name);
  }
  for (const nestedMessage of message.nestedType) restoreJsonNames(nestedMessage);
}
