/** Recognizes documents of kinds that are not read, without parsing them. */
import { kinds } from '../kinds/index.ts';

const knownKinds: ReadonlySet<string> = new Set(Object.values(kinds).map(({ kind, writtenAs }) => writtenAs ?? kind));

const kindLine = /^(["']?)kind\1[ \t]*:[ \t]*(["']?)(\w+)\2[ \t]*(?:#.*)?$/gm;

/** ConfigMap keys that are read: CA certificates. */
const authorityKey = /["']?\b(?:cacert|ca\.crt)["']?[ \t]*:/;

/**
 * Whether a document that is too long to parse can safely be skipped, such as a ConfigMap with dashboards: it has exactly one top-level
 * `kind`, of a kind that is not read, and no list of objects.
 */
export function isForeignDocument(text: string): boolean {
  const found = [...text.matchAll(kindLine)];
  const kind = found[0]?.[3];
  if (kind === undefined || found.length > 1 || kind.endsWith('List')) return false;
  if (kind === 'ConfigMap') return !authorityKey.test(text);
  return !knownKinds.has(kind);
}
