/** What a generator hands over: one named xDS resource and what it was made from. */
import type { DescMessage, Message } from '@bufbuild/protobuf';
import { type ConfigKey, configKeyText } from '../model/config.ts';

export interface Resource {
  readonly name: string;
  readonly schema: DescMessage;
  readonly message: Message;
  /** The objects that it was made from: a change of none of them leaves it as it is. */
  readonly dependsOn: readonly ConfigKey[];
}

/** A message that has a `name`, as a resource. */
export function namedResource(
  schema: DescMessage,
  message: Message & { readonly name: string },
  dependsOn: readonly ConfigKey[] = [],
): Resource {
  return { name: message.name, schema, message, dependsOn: withoutRepetitions(dependsOn) };
}

function withoutRepetitions(keys: readonly ConfigKey[]): readonly ConfigKey[] {
  return keys.length < 2 ? keys : [...new Map(keys.map((key) => [configKeyText(key), key])).values()];
}
