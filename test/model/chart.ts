import type { AnyStateNode } from 'xstate';

/** The states that a chart can rest in: final ones receive nothing any more. */
export function leaves(node: AnyStateNode): AnyStateNode[] {
  if (node.type === 'final') return [];
  const children = Object.values(node.states);
  return children.length === 0 ? [node] : children.flatMap(leaves);
}

/** Event types that the state or an ancestor has a transition for, be it an empty one: `'event.type': {}` says "ignored". */
export function spokenOf(node: AnyStateNode): Set<string> {
  const own = Object.keys((node.config as { on?: object }).on ?? {});
  return new Set([...own, ...(node.parent === undefined ? [] : spokenOf(node.parent))]);
}
