/** In `exportTo`, `.` is the own namespace, `*` all namespaces, and `~` none. */

/**
 * @param exportTo empty for all namespaces
 * @param ownNamespace namespace of the object
 */
export function isExportedTo(exportTo: ReadonlySet<string>, ownNamespace: string, namespace: string): boolean {
  if (isPublic(exportTo)) return true;
  return exportTo.has(namespace) || (namespace === ownNamespace && exportTo.has('.'));
}

/** A namespace to which only objects exported to all namespaces are visible. Not a valid namespace name. */
export const publicViewNamespace = '\u0000';

export function isPublic(exportTo: ReadonlySet<string>): boolean {
  return exportTo.size === 0 || exportTo.has('*');
}

/** Setting of MeshConfig for namespaces that share a control plane but do not trust each other. */
export interface ExportRule {
  /** Namespaces whose objects may affect proxies of other namespaces; `*` for all. */
  readonly exportingNamespaces: readonly string[];
  /** Objects of this namespace may always affect proxies of other namespaces. */
  readonly rootNamespace: string;
}

/** Whether objects of a namespace may affect proxies of other namespaces. Always true for placeholders whose namespace is unreadable (``). */
export function mayExport(namespace: string, { exportingNamespaces, rootNamespace }: ExportRule): boolean {
  const isForMesh = namespace === rootNamespace || namespace === '';
  return isForMesh || exportingNamespaces.includes('*') || exportingNamespaces.includes(namespace);
}

/** An object that may not export is limited to its own namespace. */
export function exportSet(
  namespace: string,
  exportTo: readonly string[] | undefined,
  defaultExportTo: readonly string[],
  rule: ExportRule,
): ReadonlySet<string> {
  const targets = exportTo !== undefined && exportTo.length > 0 ? exportTo : defaultExportTo;
  if (mayExport(namespace, rule)) return new Set(targets);
  return new Set(isExportedTo(new Set(targets), namespace, namespace) ? ['.'] : ['~']);
}
