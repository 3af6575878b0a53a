/**
 * Descriptors of generated messages that are made when somebody first asks for what is in them. Those of all types that a
 * program can name take a third of the processor time of its start and 5 MB; a start that serves one sidecar reads few of
 * them, and a command that only prints its help none.
 *
 * Generated files (`src/gen`) import this in place of `fileDesc` of `@bufbuild/protobuf/codegenv2`: `proto/generate.ts`
 * writes the outline of each file beside its descriptor. What is made is made by protobuf-es, of one file at a time.
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

/** A message by its name, with the messages (map entries are none) and the enums in it, in the order of its file. */
export type MessageOutline = readonly [name: string, messages?: readonly MessageOutline[], enums?: readonly string[]];

/** What is known of a file before its descriptor is read. */
export interface FileOutline {
  /** As in its descriptor: `envoy/config/core/v3/base.proto`. */
  readonly name: string;
  readonly package: string;
  readonly messages: readonly MessageOutline[];
  readonly enums: readonly string[];
  /** It declares services or extensions: asking for those reads the file. */
  readonly more: boolean;
}

/**
 * A file whose descriptor is read at the first look into one of its types.
 *
 * @param descriptor base64 of its FileDescriptorProto, as protoc-gen-es writes it: without dependencies and derived JSON names
 * @param imports the files that it imports, in its order
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
  /** What files that import this one are given while they are made: its types by name, none of them made for it. */
  readonly asImport: DescFile;
  readonly #outline: FileOutline;
  readonly #descriptor: string;
  #made: DescFile | undefined;

  constructor(outline: FileOutline, descriptor: string, imports: readonly DescFile[]) {
    this.#outline = outline;
    this.#descriptor = descriptor;
    this.name = outline.name.replace(/\.proto$/, '');
    this.dependencies = imports;
    this.messages = outline.messages.map((each) => new LazyMessage(this, undefined, outline.package, each));
    this.enums = outline.enums.map((each) => new LazyEnum(this, undefined, outline.package, each));
    const { kind, name, messages, enums } = this;
    const nothing = { dependencies: [], extensions: [], services: [] };
    this.asImport = { kind, name, proto: { name: outline.name }, messages, enums, ...nothing } as unknown as DescFile;
  }

  get extensions(): readonly DescExtension[] {
    return this.#outline.more ? this.made().extensions : [];
  }

  get services(): readonly DescService[] {
    return this.#outline.more ? this.made().services : [];
  }

  get proto(): DescFile['proto'] {
    return this.made().proto;
  }

  get edition(): DescFile['edition'] {
    return this.made().edition;
  }

  get deprecated(): boolean {
    return this.made().deprecated;
  }

  toString(): string {
    return `file ${this.#outline.name}`;
  }

  /** The file as protobuf-es makes it; its types have been moved into those of this file. */
  made(): DescFile {
    this.#made ??= this.#make();
    return this.#made;
  }

  #make(): DescFile {
    const proto = fromBinary(FileDescriptorProtoSchema, base64Decode(this.#descriptor));
    for (const message of proto.messageType) restoreJsonNames(message);
    const imports = new Map(this.dependencies.map((file) => [nameOf(file), asImport(file)]));
    proto.dependency = [...imports.keys()];
    const made = createFileRegistry(proto, (name) => imports.get(name)).getFile(proto.name)!;
    const moved = new Map<Type, LazyType>();
    for (const [index, message] of this.messages.entries()) message.pair(made.messages[index]!, moved);
    for (const [index, each] of this.enums.entries()) moved.set(made.enums[index]!, each);
    for (const [from, to] of moved) to.take(from as DescMessage & DescEnum, moved);
    for (const extension of made.extensions) referTo(extension, moved);
    for (const service of made.services) {
      for (const method of service.methods as Changeable<DescMethod>[]) {
        method.input = inPlaceOf(method.input, moved);
        method.output = inPlaceOf(method.output, moved);
      }
    }
    return made;
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
    this.nestedMessages = messages.map((each) => new LazyMessage(file, this, this.typeName, each));
    this.nestedEnums = enums.map((each) => new LazyEnum(file, this, this.typeName, each));
  }

  get fields(): DescMessage['fields'] {
    return this.#after('fields');
  }

  get field(): DescMessage['field'] {
    return this.#after('field');
  }

  get oneofs(): DescMessage['oneofs'] {
    return this.#after('oneofs');
  }

  get members(): DescMessage['members'] {
    return this.#after('members');
  }

  get proto(): DescMessage['proto'] {
    return this.#after('proto');
  }

  get deprecated(): boolean {
    return this.#after('deprecated');
  }

  toString(): string {
    return `message ${this.typeName}`;
  }

  /** Notes what of the file as it was made is this message, and what is in it. */
  pair(made: DescMessage, moved: Map<Type, LazyType>): void {
    moved.set(made, this);
    for (const [index, message] of this.nestedMessages.entries()) message.pair(made.nestedMessages[index]!, moved);
    for (const [index, each] of this.nestedEnums.entries()) moved.set(made.nestedEnums[index]!, each);
  }

  take(made: DescMessage, moved: ReadonlyMap<Type, LazyType>): void {
    const self = this as unknown as DescMessage;
    for (const field of made.fields) {
      (field as Changeable<DescField>).parent = self;
      referTo(field, moved);
    }
    for (const oneof of made.oneofs as Changeable<DescMessage['oneofs'][number]>[]) oneof.parent = self;
    own(this, made, ['fields', 'field', 'oneofs', 'members', 'proto', 'deprecated']);
  }

  /** Reading the file puts its own values in the place of these accessors. */
  #after<Name extends keyof DescMessage>(name: Name): DescMessage[Name] {
    this.file.made();
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
    return this.#after('values');
  }

  get value(): DescEnum['value'] {
    return this.#after('value');
  }

  get open(): boolean {
    return this.#after('open');
  }

  get sharedPrefix(): string | undefined {
    return this.#after('sharedPrefix');
  }

  get proto(): DescEnum['proto'] {
    return this.#after('proto');
  }

  get deprecated(): boolean {
    return this.#after('deprecated');
  }

  toString(): string {
    return `enum ${this.typeName}`;
  }

  take(made: DescEnum): void {
    const self = this as unknown as DescEnum;
    for (const value of made.values as Changeable<DescEnum['values'][number]>[]) value.parent = self;
    own(this, made, ['values', 'value', 'open', 'sharedPrefix', 'proto', 'deprecated']);
  }

  #after<Name extends keyof DescEnum>(name: Name): DescEnum[Name] {
    this.file.made();
    return (this as unknown as DescEnum)[name];
  }
}

type Changeable<Desc> = { -readonly [Name in keyof Desc]: Desc[Name] };
type Type = DescMessage | DescEnum;
type LazyType = LazyMessage | LazyEnum;

function referTo(field: DescField | DescExtension, moved: ReadonlyMap<Type, LazyType>): void {
  const changeable = field as { message?: DescMessage | undefined; enum?: DescEnum | undefined };
  if (changeable.message !== undefined) changeable.message = inPlaceOf(changeable.message, moved);
  if (changeable.enum !== undefined) changeable.enum = inPlaceOf(changeable.enum, moved);
}

/** Types of the same file were made anew; those of others are already the ones that everybody has. */
function inPlaceOf<Desc extends Type>(made: Desc, moved: ReadonlyMap<Type, LazyType>): Desc {
  return (moved.get(made) as unknown as Desc | undefined) ?? made;
}

function own<Desc extends Type>(to: LazyType, from: Desc, names: readonly (keyof Desc)[]): void {
  for (const name of names) Object.defineProperty(to, name, { value: from[name], enumerable: true });
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

/** protoc-gen-es leaves out the JSON names that follow from the names. */
function restoreJsonNames(message: DescriptorProto): void {
  for (const field of message.field) {
    if (!isFieldSet(field, FieldDescriptorProtoSchema.field.jsonName)) field.jsonName = protoCamelCase(field.name);
  }
  for (const nested of message.nestedType) restoreJsonNames(nested);
}
