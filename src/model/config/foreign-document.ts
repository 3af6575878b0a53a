/** Recognizes documents of ignored kinds without parsing them. */
import { kinds } from '../kinds/index.ts';

const kindNames: ReadonlySet<string> = new Set(Object.values(kinds).map(({ kind, writtenAs }) => writtenAs ?? kind));

const kindLine = /^(["']?)kind\1[ \t]*:[ \t]*(["']?)(\w+)\2[ \t]*(?:#.*)?$/gm;

/** ConfigMap keys of CA certificates. ConfigMaps with such a key are read. */
const authorityKey = /["']?\b(?:cacert|ca\.crt)["']?[ \t]*:/;

/** An overlong document, such as a ConfigMap with dashboards, is skipped if it has one top-level `kind`, which is ignored, and no list of objects. */
export function isForeignDocument(text: string): boolean {
  const kindMatches = [...text.matchAll(kindLine)];
  const kind = kindMatches[0]?.[3];
  if (kind === undefined || kindMatches.length > 1 || kind.endsWith('List')) return false;
  if (kind === 'ConfigMap') return !authorityKey.test(text);
  return !kindNames.has(kind);
}
