/** Visibility by `exportTo` of services and rules: `.` is the own namespace, `*` all namespaces, `~` none. */

/**
 * Whether an object is visible to a namespace.
 * @param exportTo empty means all namespaces
 * @param ownNamespace namespace of the object
 */
export function isExportedTo(exportTo: ReadonlySet<string>, ownNamespace: string, namespace: string): boolean {
  if (isPublic(exportTo)) return true;
  return exportTo.has(namespace) || (namespace === ownNamespace && exportTo.has('.'));
}

/** Not a valid namespace name: it sees exactly the objects exported to all namespaces. */
export const publicViewNamespace = '\u0000';

export function isPublic(exportTo: ReadonlySet<string>): boolean {
  return exportTo.size === 0 || exportTo.has('*');
}

/** The mesh's rule for namespaces that share a control plane but do not trust each other; part of MeshConfig. */
export interface ExportRule {
  /** Namespaces whose objects may affect proxies of other namespaces; `*`: all. */
  readonly exportingNamespaces: readonly string[];
  /** Its objects may always affect proxies of other namespaces. */
  readonly rootNamespace: string;
}

/** Whether objects of a namespace may affect proxies of other namespaces. Always true for stand-ins with an unreadable namespace (``). */
export function mayExport(namespace: string, { exportingNamespaces, rootNamespace }: ExportRule): boolean {
  const isForMesh = namespace === rootNamespace || namespace === '';
  return isForMesh || exportingNamespaces.includes('*') || exportingNamespaces.includes(namespace);
}

/** The object's `exportTo`, else the mesh's default; limited to the own namespace if it may not export. */
export function exportSet(
  namespace: string,
  exportTo: readonly string[] | undefined,
  byDefault: readonly string[],
  rule: ExportRule,
): ReadonlySet<string> {
  const targets = exportTo !== undefined && exportTo.length > 0 ? exportTo : byDefault;
  if (mayExport(namespace, rule)) return new Set(targets);
  return new Set(isExportedTo(new Set(targets), namespace, namespace) ? ['.'] : ['~']);
}
