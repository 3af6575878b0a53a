/**
 * Names of secrets that the agent reads from files, which Envoy requests by SDS instead of reading them (§8.2, tls
 * row).
 */
import type { SdsSecretConfig } from '../../gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.ts';
import { agentFileSecret } from './config-source-message.ts';

export function fileCertificateSecret(certificate: string, key: string): SdsSecretConfig {
  return agentFileSecret(`file-cert:${certificate}~${key}`);
}

export function fileRootSecret(file: string): SdsSecretConfig {
  return agentFileSecret(`file-root:${file}`);
}

/**
 * As {@link fileRootSecret}, with revocation lists, which the agent checks: Envoy does not receive an invalid list.
 *
 * @returns `undefined` for paths that the name cannot contain, whose list Envoy then reads itself
 */
export function revocationRootSecret(file: string, lists: string): SdsSecretConfig | undefined {
  return file.includes('~') || lists.includes('~') ? undefined : agentFileSecret(`file-root-crl:${file}~${lists}`);
}
