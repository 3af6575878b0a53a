/**
 * Which secrets a client may have (spec/discovery.md §8.7, credentialName): those of the namespace that it has shown to be
 * of. Decided before any cache is asked, for caches know shapes, and not who is there.
 */
import { onceFor } from '../../model/collections/once-for.ts';
import { setBounded } from '../../model/collections/set-bounded.ts';
import { parseCredentialName } from '../../networking/secrets/credential-name.ts';

const none: readonly string[] = [];
/** Permitted names by list and namespace: the same list for the same list, since whoever is asked knows lists by identity. */
const permitted = onceFor((_: readonly string[]) => new Map<string, readonly string[]>());
/** Namespaces that are told apart for a list: beyond, what was found for it is forgotten. */
const maxNamespaces = 64;

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
  if (namespace === undefined || names.length === 0) return none;
  const key = `${namespace}/${ownNamespace}`;
  const ofList = permitted(names);
  let chosen = ofList.get(key);
  if (chosen === undefined) {
    chosen = names.filter((name) => parseCredentialName(name, ownNamespace)?.namespace === namespace);
    if (chosen.length === names.length) chosen = names;
    setBounded(ofList, key, chosen, maxNamespaces);
  }
  return chosen;
}

const others = onceFor((names: readonly string[]) => {
  const chosen = names.filter((name) => parseCredentialName(name, '-')?.kind !== 'Secret');
  return chosen.length === names.length ? names : chosen;
});

/** The names that are about no Secret: the same list for the same list. */
export const withoutSecrets = (names: readonly string[]): readonly string[] => others(names);
