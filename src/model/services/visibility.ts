/** Who sees what: `exportTo` of services and rules. `.` is the own namespace, `*` everybody, `~` nobody. */

/**
 * Whether something is shown to a namespace.
 *
 * @param exportTo what it says; empty counts as everybody.
 * @param ownNamespace where it is defined.
 */
export function isExportedTo(exportTo: ReadonlySet<string>, ownNamespace: string, namespace: string): boolean {
  if (isPublic(exportTo)) return true;
  return exportTo.has(namespace) || (namespace === ownNamespace && exportTo.has('.'));
}

/** No namespace is called so: it sees what everybody sees. */
export const nobodysNamespace = '\u0000';

/** Whether everybody sees it. */
export function isPublic(exportTo: ReadonlySet<string>): boolean {
  return exportTo.size === 0 || exportTo.has('*');
}

/** What an object says, else the mesh's default. */
export function exportSet(own: readonly string[] | undefined, byDefault: readonly string[]): ReadonlySet<string> {
  return new Set(own !== undefined && own.length > 0 ? own : byDefault);
}
