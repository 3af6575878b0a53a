/** Reads `istio.networking.nds.v1.NameTable` by field numbers. Generated code would load protobuf's descriptors for one message. */

import { fieldsOf, textIn, textOf } from '../grpc/message-fields.ts';
import type { Steps } from '../turns.ts';

export interface NameInfo {
  readonly ips: readonly string[];
  /** Registry of the service, such as `Kubernetes` or `External`. */
  readonly registry: string;
  readonly shortname: string;
  readonly namespace: string;
  readonly altHosts: readonly string[];
}

export type NameTable = ReadonlyMap<string, NameInfo>;

/** Throws if the bytes are no message. */
export function* readNameTableInSteps(bytes: Uint8Array): Steps<NameTable> {
  const table = new Map<string, NameInfo>();
  for (const { field, bytes: entry } of fieldsOf(bytes))
    if (field === 1) table.set(textIn(entry, 1) ?? '', yield* nameInfoIn(entry));
  return table;
}

/** Parts of a map entry's value are merged. */
function* nameInfoIn(entry: Uint8Array): Steps<NameInfo> {
  const ips: string[] = [];
  const altHosts: string[] = [];
  let [registry, shortname, namespace] = ['', '', ''];
  for (const { field: infoField, bytes: info } of fieldsOf(entry)) {
    if (infoField !== 2) continue;
    for (const { field, bytes } of fieldsOf(info)) {
      if (field === 1) ips.push(textOf(bytes));
      else if (field === 2) registry = textOf(bytes);
      else if (field === 3) shortname = textOf(bytes);
      else if (field === 4) namespace = textOf(bytes);
      else if (field === 5) altHosts.push(textOf(bytes));
      yield;
    }
  }
  return { ips, registry, shortname, namespace, altHosts };
}
