/**
 * Summary of a .proto file that generated code uses before its descriptor is parsed
 * (src/runtime/protobuf/lazy-descriptors.ts).
 */
import type { DescriptorProto, FileDescriptorProto } from '@bufbuild/protobuf/wkt';
import type { FileOutline, MessageOutline } from '../src/runtime/protobuf/lazy-descriptors.ts';

/** @throws Error if the file contains something that an outline does not represent */
export function outlineOf(file: FileDescriptorProto): FileOutline {
  const { name, messageType, enumType, service, extension, publicDependency } = file;
  if (publicDependency.length > 0)
    throw new Error(`proto/generate: ${name} imports publicly, which outlines do not show`);
  return {
    name,
    package: file.package,
    messages: messageType.map((message) => messageOutline(message, name)),
    enums: enumType.map((each) => each.name),
    more: service.length + extension.length > 0,
  };
}

function messageOutline({ name, nestedType, enumType, extension }: DescriptorProto, file: string): MessageOutline {
  if (extension.length > 0)
    throw new Error(`proto/generate: ${file} has extensions in ${name}, which outlines do not show`);
  const nested = nestedType.filter((message) => message.options?.mapEntry !== true);
  const messages = nested.map((message) => messageOutline(message, file));
  if (enumType.length > 0) return [name, messages, enumType.map((each) => each.name)];
  return messages.length > 0 ? [name, messages] : [name];
}
