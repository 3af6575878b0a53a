/**
 * Which secrets a client may have (spec/discovery.md §8.7, credentialName): those of the namespace that it has shown to be
 * of. Decided before any cache is asked, for caches know shapes, and not who is there.
 */
import { parseCredentialName } from '../../networking/secrets/credential-name.ts';

const none: readonly string[] = [];
/** By namespace and list: the same list for the same list, since whoever is asked knows lists by identity. */
const permitted = new Map<string, WeakMap<readonly string[], readonly string[]>>();

/**
 * The names of secrets among these that a client may have.
 *
 * @param namespace whose secrets it may have; undefined: nobody knows who it is
 * @param ownNamespace what a name without a namespace means
 */
export function permittedSecrets(
  names: readonly string[],
  namespace: string | undefined,
  ownNamespace: string,
): readonly string[] {
  if (namespace === undefined) return none;
  const key = `${namespace}/${ownNamespace}`;
  const ofNamespace = permitted.get(key) ?? new WeakMap<readonly string[], readonly string[]>();
  permitted.set(key, ofNamespace);
  let chosen = ofNamespace.get(names);
  if (chosen === undefined) {
    chosen = names.filter((name) => parseCredentialName(name, ownNamespace)?.namespace === namespace);
    if (chosen.length === names.length) chosen = names;
    ofNamespace.set(names, chosen);
  }
  return chosen;
}
