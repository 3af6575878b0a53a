/** Resource names of credentials that the control plane serves (spec/discovery.md §8.1, §8.7). */

import { checksClients, clientAuthority } from '../../model/kinds/destinations/client-authority.ts';
import type { ServerTlsSettings } from '../../model/kinds/gateway/gateway.ts';

export interface CredentialName {
  readonly kind: 'Secret' | 'ConfigMap';
  readonly namespace: string;
  /** Name of the Secret, without `-cacert`. */
  readonly name: string;
  /** Certificates of authorities that verify clients, otherwise the server's certificate and key. */
  readonly roots: boolean;
}

const rootsSuffix = '-cacert';
const schemes = { 'kubernetes://': 'Secret', 'configmap://': 'ConfigMap' } as const;

/** Resource name of a credential in a Gateway or DestinationRule: `kubernetes://web-cert`. */
export function credentialResourceName(credential: string): string {
  return credential.includes('://') ? credential : `kubernetes://${credential}`;
}

/** Resource name of the authorities of a credential: `kubernetes://web-cert-cacert`. */
export function rootsResourceName(credential: string): string {
  const name = credentialResourceName(credential);
  return name.endsWith(rootsSuffix) ? name : `${name}${rootsSuffix}`;
}

/** A credential that a server requests from the control plane. */
export interface ServerCredential {
  readonly resource: string;
  /** The field of the TLS settings with the credential, such as `credentialNames[1]`. */
  readonly field: string;
}

/** The credentials that a server requests from the control plane, none if its certificates come from elsewhere. */
export function serverCredentials(tls: ServerTlsSettings): readonly ServerCredential[] {
  if (tls.mode !== 'SIMPLE' && tls.mode !== 'MUTUAL' && tls.mode !== 'OPTIONAL_MUTUAL') return [];
  const { credentialName, credentialNames, caCertCredentialName } = tls;
  const credentials = credentialNames?.length
    ? credentialNames.map((name, index) => ({ name, field: `credentialNames[${index}]` }))
    : credentialName
      ? [{ name: credentialName, field: 'credentialName' }]
      : [];
  const authority = checksClients(tls) ? clientAuthority(tls) : undefined;
  const rootsField = caCertCredentialName ? 'caCertCredentialName' : credentials[0]?.field;
  return [
    ...credentials.map(({ name, field }) => ({ resource: credentialResourceName(name), field })),
    ...(authority?.kind === 'credential' && rootsField !== undefined
      ? [{ resource: rootsResourceName(authority.name), field: rootsField }]
      : []),
  ];
}

/** Resource names of {@link serverCredentials}. */
export function credentialsOfServer(tls: ServerTlsSettings): readonly string[] {
  return serverCredentials(tls).map(({ resource }) => resource);
}

/**
 * Parses `kubernetes://[namespace/]name` or `configmap://[namespace/]name`, `undefined` for any other name.
 *
 * @param ownNamespace namespace of the requesting proxy, the default
 */
export function parseCredentialName(resourceName: string, ownNamespace: string): CredentialName | undefined {
  for (const [scheme, kind] of Object.entries(schemes)) {
    if (!resourceName.startsWith(scheme)) continue;
    const parts = resourceName.slice(scheme.length).split('/');
    const [namespace, name] = parts.length === 1 ? [ownNamespace, parts[0]!] : [parts[0]!, parts[1]!];
    if (parts.length > 2 || namespace === '' || withoutSuffix(name) === '') return undefined;
    return { kind, namespace, name: withoutSuffix(name), roots: name.endsWith(rootsSuffix) };
  }
  return undefined;
}

/** The object of a name. Names with and without the suffix are one subject. */
export function subjectOfCredential(resourceName: string): string {
  return withoutSuffix(resourceName.slice(resourceName.lastIndexOf('/') + 1));
}

function withoutSuffix(name: string): string {
  return name.endsWith(rootsSuffix) ? name.slice(0, -rootsSuffix.length) : name;
}

/** The object name with the suffix. It may exist beside the one without. */
export function rootsObjectName(name: string): string {
  return `${name}${rootsSuffix}`;
}
