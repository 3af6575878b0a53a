import type { ServerTlsSettings } from '../gateway/gateway.ts';

export type ClientAuthority =
  /** `credential` names a Secret or ConfigMap: a separate one, or the server's own credential. */
  { readonly kind: 'credential'; readonly name: string } | { readonly kind: 'file'; readonly path: string };

/** Without a CA, the server cannot verify certificates and must reject all clients that need one. */
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
