/** Documents of kinds that are not read, known without parsing them. */
import { kinds } from '../kinds/index.ts';

const knownKinds: ReadonlySet<string> = new Set(Object.values(kinds).map(({ kind, writtenAs }) => writtenAs ?? kind));

/** A top-level field with a plain or quoted word behind it. */
const kindLine = /^(["']?)kind\1[ \t]*:[ \t]*(["']?)(\w+)\2[ \t]*(?:#.*)?$/gm;

/** The keys of a ConfigMap that are read: certificates of authorities. */
const authorityKey = /["']?\b(?:cacert|ca\.crt)["']?[ \t]*:/;

/**
 * Whether a document that is too long to be parsed is surely none of ours, such as a ConfigMap of dashboards: exactly one
 * top-level `kind`, of a kind that is not read, and no list of objects.
 */
export function isForeignDocument(text: string): boolean {
  const found = [...text.matchAll(kindLine)];
  const kind = found[0]?.[3];
  if (kind === undefined || found.length > 1 || kind.endsWith('List')) return false;
  if (kind === 'ConfigMap') return !authorityKey.test(text);
  return !knownKinds.has(kind);
}
