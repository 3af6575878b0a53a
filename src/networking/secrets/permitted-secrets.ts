/**
 * Filters the Secrets that a client may receive: those of its verified namespace, and those that a ReferenceGrant grants to the Gateways of that
 * namespace.
 */
import { memoizeByObject } from '../../model/collections/memoize-by-object.ts';
import { setBounded } from '../../model/collections/set-bounded.ts';
import type { ReferenceGrants } from '../../model/push-context/reference-grants.ts';
import { parseCredentialName } from './credential-name.ts';

export interface SecretClient {
  /** Verified namespace; `undefined` for an unauthenticated client. */
  readonly namespace: string | undefined;
  /** Default namespace of credential names. */
  readonly ownNamespace: string;
  /** Grants for the client. If absent, it receives no Secrets of other namespaces. */
  readonly grants?: ReferenceGrants;
}

interface PermittedNames {
  readonly grants: ReferenceGrants | undefined;
  readonly names: readonly string[];
}

const noNames: readonly string[] = [];
/** Keeps the same list for equal requests, because callers compare by identity. */
const permittedByNamespace = memoizeByObject((_: readonly string[]) => new Map<string, PermittedNames>());
const maxNamespaces = 64;

export function permittedSecrets(
  names: readonly string[],
  { namespace, ownNamespace, grants }: SecretClient,
): readonly string[] {
  if (namespace === undefined || names.length === 0) return noNames;
  const key = `${namespace}/${ownNamespace}`;
  const permittedByKey = permittedByNamespace(names);
  const cachedEntry = permittedByKey.get(key);
  if (cachedEntry !== undefined && cachedEntry.grants === grants) return cachedEntry.names;
  const isNamePermitted = (resourceName: string): boolean => {
    const credential = parseCredentialName(resourceName, ownNamespace);
    if (credential === undefined) return false;
    if (credential.namespace === namespace) return true;
    // Grants do not apply if the node's namespace differs from that of its identity.
    if (grants === undefined || namespace !== ownNamespace || credential.kind !== 'Secret') return false;
    return grants.allowsSecret(namespace, credential.namespace, credential.name);
  };
  const permittedNames = names.filter(isNamePermitted);
  const all = permittedNames.length === names.length ? names : permittedNames;
  const isUnchanged =
    cachedEntry?.names.length === all.length && all.every((name, index) => name === cachedEntry.names[index]);
  const result = { grants, names: isUnchanged ? cachedEntry.names : all };
  setBounded(permittedByKey, key, result, maxNamespaces);
  return result.names;
}

const nonSecretNames = memoizeByObject((names: readonly string[]) => {
  const permittedNames = names.filter((name) => parseCredentialName(name, '-')?.kind !== 'Secret');
  return permittedNames.length === names.length ? names : permittedNames;
});

/** Returns the same list for the same names. */
export const withoutSecrets = (names: readonly string[]): readonly string[] => nonSecretNames(names);
