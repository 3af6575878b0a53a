/**
 * @returns whether XState 5.33 tries a transition on `descriptor` for an event: `a.*` matches `a` and `a.b.c`, `*`
 * matches every event
 */
export function matchesDescriptor(type: string, descriptor: string): boolean {
  if (descriptor === type || descriptor === '*') return true;
  return descriptor.endsWith('.*') && `${type}.`.startsWith(descriptor.slice(0, -1));
}
