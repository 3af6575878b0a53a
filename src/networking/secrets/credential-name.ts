import { checksClients, clientAuthority } from '../../model/kinds/destinations/client-authority.ts';
import type { ServerTlsSettings } from '../../model/kinds/gateway/gateway.ts';

export interface CredentialName {
  readonly kind: 'Secret' | 'ConfigMap';
  readonly namespace: string;
  /** Name of the object, without `-cacert`. */
  readonly name: string;
  /** Whether the resource contains CA certificates that verify clients, instead of a server's certificate and key. */
  readonly roots: boolean;
}

const rootsSuffix = '-cacert';
const schemes = { 'kubernetes://': 'Secret', 'configmap://': 'ConfigMap' } as const;

/** Returns a name such as `kubernetes://web-cert`. */
export function credentialResourceName(credential: string): string {
  return credential.includes('://') ? credential : `kubernetes://${credential}`;
}

/** Returns a name such as `kubernetes://web-cert-cacert`. */
export function rootsResourceName(credential: string): string {
  const name = credentialResourceName(credential);
  return name.endsWith(rootsSuffix) ? name : `${name}${rootsSuffix}`;
}

export interface ServerCredential {
  readonly resource: string;
  readonly field: string;
}

/** Returns no credentials if the certificates are files or come from the agent. */
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

export function credentialsOfServer(tls: ServerTlsSettings): readonly string[] {
  return serverCredentials(tls).map(({ resource }) => resource);
}

/**
 * Parses `kubernetes://[NAMESPACE/]NAME` or `configmap://[NAMESPACE/]NAME`.
 *
 * @param ownNamespace default: the namespace of the requesting proxy
 */
export function parseCredentialName(resourceName: string, ownNamespace: string): CredentialName | undefined {
  for (const [scheme, kind] of Object.entries(schemes)) {
    if (!resourceName.startsWith(scheme)) continue;
    const segments = resourceName.slice(scheme.length).split('/');
    const [namespace, name] = segments.length === 1 ? [ownNamespace, segments[0]!] : [segments[0]!, segments[1]!];
    if (segments.length > 2 || namespace === '' || stripSuffix(name) === '') return undefined;
    return { kind, namespace, name: stripSuffix(name), roots: name.endsWith(rootsSuffix) };
  }
  return undefined;
}

export function subjectOfCredential(resourceName: string): string {
  return stripSuffix(resourceName.slice(resourceName.lastIndexOf('/') + 1));
}

function stripSuffix(name: string): string {
  return name.endsWith(rootsSuffix) ? name.slice(0, -rootsSuffix.length) : name;
}

/** Objects with and without `-cacert` may both exist. */
export function rootsObjectName(name: string): string {
  return `${name}${rootsSuffix}`;
}
