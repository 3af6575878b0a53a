/** Who must have signed the certificates of a server's clients, as the server's TLS settings say it (spec/discovery.md §8.7). */
import type { ServerTlsSettings } from '../gateway/gateway.ts';

export type ClientAuthority =
  /** Where the authority is: in a Secret or a ConfigMap that is named, or beside the certificate of the server's own credential. */
  { readonly kind: 'credential'; readonly name: string } | { readonly kind: 'file'; readonly path: string };

/** Undefined when nothing is said: a server that asks for certificates could check none, and must let nobody in. */
export function clientAuthority(tls: ServerTlsSettings): ClientAuthority | undefined {
  const name = tls.caCertCredentialName || tls.credentialNames?.[0] || tls.credentialName;
  if (name) return { kind: 'credential', name };
  const path = tls.caCertificates || tls.tlsCertificates?.find((pair) => pair.caCertificates)?.caCertificates;
  return path ? { kind: 'file', path } : undefined;
}

/** Whether certificates of clients are looked at, by authorities that the settings must name. */
export function checksClients({ mode }: Pick<ServerTlsSettings, 'mode'>): boolean {
  return mode === 'MUTUAL' || mode === 'OPTIONAL_MUTUAL';
}
