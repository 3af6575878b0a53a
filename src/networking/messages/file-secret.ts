/** The agent reads these secrets from files, and Envoy requests them by SDS. */
import type { SdsSecretConfig } from '../../gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.ts';
import { agentFileSecret } from './config-source-message.ts';

export function fileCertificateSecret(certificate: string, key: string): SdsSecretConfig {
  return agentFileSecret(`file-cert:${certificate}~${key}`);
}

export function fileRootSecret(file: string): SdsSecretConfig {
  return agentFileSecret(`file-root:${file}`);
}

/**
 * Like {@link fileRootSecret}, with revocation lists. The agent never passes an invalid list to Envoy.
 *
 * @returns `undefined` if the name cannot contain the paths; Envoy then reads the list itself
 */
export function revocationRootSecret(file: string, lists: string): SdsSecretConfig | undefined {
  return file.includes('~') || lists.includes('~') ? undefined : agentFileSecret(`file-root-crl:${file}~${lists}`);
}
