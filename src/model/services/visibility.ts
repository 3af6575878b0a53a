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

/** The mesh's rule for namespaces that share one control plane and do not trust each other; a MeshConfig has it. */
export interface ExportRule {
  /** Namespaces whose objects may affect proxies of other namespaces; `*`: all. */
  readonly exportingNamespaces: readonly string[];
  /** Its objects always may. */
  readonly rootNamespace: string;
}

/** Whether objects of a namespace may affect proxies of other namespaces. What stands in for an object of an unreadable namespace (``) must. */
export function mayExport(namespace: string, { exportingNamespaces, rootNamespace }: ExportRule): boolean {
  const isForMesh = namespace === rootNamespace || namespace === '';
  return isForMesh || exportingNamespaces.includes('*') || exportingNamespaces.includes(namespace);
}

/** The `exportTo` of an object, else the mesh's default; where its namespace may not export, that namespace at most. */
export function exportSet(
  namespace: string,
  exportTo: readonly string[] | undefined,
  byDefault: readonly string[],
  rule: ExportRule,
): ReadonlySet<string> {
  const said = exportTo !== undefined && exportTo.length > 0 ? exportTo : byDefault;
  if (mayExport(namespace, rule)) return new Set(said);
  return new Set(isExportedTo(new Set(said), namespace, namespace) ? ['.'] : ['~']);
}
