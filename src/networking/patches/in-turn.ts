/** What patches do to one message, whatever it is a message of. */
import type { DescMessage, MessageShape } from '@bufbuild/protobuf';
import { originsOf, withOrigins } from '../inputs/message-origin.ts';
import type { HeldPatch } from './held-patch.ts';
import { type ListMerge, merged } from './merge-messages.ts';
import { valueAs } from './patch-set.ts';
import { attempt } from './status.ts';

/** The message after each patch in its turn; undefined as soon as one has removed it. One that fails leaves it as it was. */
export function inTurn<M extends object>(
  message: M,
  patches: readonly HeldPatch[],
  apply: (message: M, held: HeldPatch) => M | undefined,
): M | undefined {
  let result: M | undefined = message;
  for (const held of patches) {
    if (result === undefined) return undefined;
    const before: M = result;
    result = attempt<M | undefined>(held, before, () => apply(before, held));
  }
  return result;
}

/**
 * A copy with the patch's value merged into it, which knows where it is from.
 *
 * @param value what of it is merged
 * @throws PatchFailure
 */
export function mergedWith<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
  held: HeldPatch,
  value: MessageShape<Desc> = valueAs(schema, held),
): MessageShape<Desc> {
  const result = merged(schema, message, value, listsOf(held));
  return withOrigins(result, [...originsOf(message), held.origin]);
}

/** What the patch says of lists. */
export function listsOf({ patch }: HeldPatch): ListMerge {
  return patch.operation === 'MERGE' ? 'append' : 'replace';
}
