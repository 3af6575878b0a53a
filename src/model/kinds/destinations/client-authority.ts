/** The CA for client certificates, from a server's TLS settings (spec/discovery.md §8.7). */
import type { ServerTlsSettings } from '../gateway/gateway.ts';

export type ClientAuthority =
  /** Location of the CA: a named Secret or ConfigMap, or beside the server's own credential. */
  { readonly kind: 'credential'; readonly name: string } | { readonly kind: 'file'; readonly path: string };

/** `undefined` if none is configured: the server cannot verify certificates and must reject all clients that need one. */
export function clientAuthority(tls: ServerTlsSettings): ClientAuthority | undefined {
  const name = tls.caCertCredentialName || tls.credentialNames?.[0] || tls.credentialName;
  if (name) return { kind: 'credential', name };
  const path = tls.caCertificates || tls.tlsCertificates?.find((pair) => pair.caCertificates)?.caCertificates;
  return path ? { kind: 'file', path } : undefined;
}

/** Whether client certificates are verified; the settings must then name a CA. */
export function checksClients({ mode }: Pick<ServerTlsSettings, 'mode'>): boolean {
  return mode === 'MUTUAL' || mode === 'OPTIONAL_MUTUAL';
}
