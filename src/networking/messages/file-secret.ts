/** Names of the secrets that the agent makes of files, which Envoy asks it for instead of reading them (§8.2, tls row). */
import type { SdsSecretConfig } from '../../gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.ts';
import { agentFileSecret } from './config-source-message.ts';

/** A certificate chain and its key. */
export function fileCertificateSecret(certificate: string, key: string): SdsSecretConfig {
  return agentFileSecret(`file-cert:${certificate}~${key}`);
}

/** The authorities that peers are trusted by. */
export function fileRootSecret(file: string): SdsSecretConfig {
  return agentFileSecret(`file-root:${file}`);
}

/**
 * The same with their revocation lists, which the agent checks: a list that cannot be used does not reach Envoy.
 *
 * @returns `undefined` for paths that the name cannot hold: Envoy reads the list itself then
 */
export function revocationRootSecret(file: string, lists: string): SdsSecretConfig | undefined {
  return file.includes('~') || lists.includes('~') ? undefined : agentFileSecret(`file-root-crl:${file}~${lists}`);
}
