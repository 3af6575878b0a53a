/** Determines from visibility (`exportTo`) whether two objects apply to a common client. */
import { isExportedTo, isPublic } from '../../../model/services/visibility.ts';

export interface ExportedObject {
  readonly namespace: string;
  readonly exportTo: ReadonlySet<string>;
}

export function haveSharedClients(a: ExportedObject, b: ExportedObject): boolean {
  if (isPublic(a.exportTo) || isPublic(b.exportTo)) return !isHidden(a) && !isHidden(b);
  return [...a.exportTo].some((exportedTo) =>
    isExportedTo(b.exportTo, b.namespace, exportedTo === '.' ? a.namespace : exportedTo),
  );
}

function isHidden({ exportTo }: ExportedObject): boolean {
  return exportTo.size === 1 && exportTo.has('~');
}
