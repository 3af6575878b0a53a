import type { DescMessage, MessageShape } from '@bufbuild/protobuf';
import { originsOf, withOrigins } from '../inputs/message-origin.ts';
import type { ActivePatch } from './active-patch.ts';
import { type ListMerge, mergeMessages } from './merge-messages.ts';
import { messageOfPatch } from './patch-set.ts';
import { attemptPatch } from './status.ts';

/** Returns `undefined` if a patch removes the message. A failing patch leaves the message unchanged. */
export function applyPatches<M extends object>(
  message: M,
  patches: readonly ActivePatch[],
  apply: (message: M, activePatch: ActivePatch) => M | undefined,
): M | undefined {
  let result: M | undefined = message;
  for (const activePatch of patches) {
    if (result === undefined) return undefined;
    const current: M = result;
    result = attemptPatch<M | undefined>(activePatch, current, () => apply(current, activePatch));
  }
  return result;
}

/** @throws PatchFailure */
export function mergeWithPatch<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
  activePatch: ActivePatch,
  value: MessageShape<Desc> = messageOfPatch(schema, activePatch),
): MessageShape<Desc> {
  const result = mergeMessages(schema, message, value, listMergeOf(activePatch));
  return withOrigins(result, [...originsOf(message), activePatch.origin]);
}

export function listMergeOf({ patch }: ActivePatch): ListMerge {
  return patch.operation === 'MERGE' ? 'append' : 'replace';
}
