/** TLS to servers outside the mesh (modes SIMPLE and MUTUAL). */
import type { SdsSecretConfig } from '../../gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.ts';
import type { ClientTlsSettings } from '../../model/kinds/destinations/traffic-policy.ts';
import type { MeshConfig } from '../../model/mesh/mesh-config.ts';
import type { Service } from '../../model/services/service.ts';
import type { TypedExtension } from '../messages/any.ts';
import { adsSecret } from '../messages/config-source-message.ts';
import { fileCertificateSecret, fileRootSecret, revocationRootSecret } from '../messages/file-secret.ts';
import { tlsParameters } from '../messages/tls-parameters.ts';
import { credentialResourceName, rootsResourceName } from '../secrets/credential-name.ts';
import { type CommonTlsInit, fileSource, subjectAltNames, tlsSocket, type ValidationInit } from './tls-socket.ts';

const systemRootsFile = '/etc/ssl/certs/ca-certificates.crt';
/** Secret name by which the agent serves the public root certificates, independent of their path. */
const systemRoots = 'system';

export interface PublicTlsTarget {
  readonly service: Pick<Service, 'serviceAccounts' | 'registry'>;
  readonly http2: boolean;
  readonly mesh: Pick<MeshConfig, 'tlsDefaults'>;
  readonly hasAgent: boolean;
  readonly checksRevocationLists: boolean;
  /**
   * Whether the proxy may request Secrets from the control plane: gateways may, and sidecars that the rule selects. A rule without a selector would
   * give the key to every sidecar of its namespace.
   */
  readonly mayRequestSecrets: boolean;
  readonly roots?: Uint8Array;
}

export interface PublicTls {
  readonly autoSni: boolean;
  readonly autoSanValidation: boolean;
  readonly transportSocket: TypedExtension;
}

export function publicTls(settings: ClientTlsSettings, target: PublicTlsTarget): PublicTls {
  const { service, http2, mesh } = target;
  const names = settings.subjectAltNames?.length ? settings.subjectAltNames : namesOf(service);
  const autoSni = settings.sni === undefined || settings.sni === '';
  return {
    autoSni,
    autoSanValidation: autoSni && names.length === 0 && !settings.insecureSkipVerify,
    transportSocket: tlsSocket(settings.sni ?? '', {
      ...clientCertificate(settings, target),
      ...peerValidation(settings, names, target),
      alpnProtocols: http2 ? ['h2'] : [],
      tlsParams: tlsParameters(mesh.tlsDefaults),
    }),
  };
}

/**
 * Subject alternative names of a ServiceEntry. The service accounts of a Service are mesh identities, which a server
 * outside the mesh does not have.
 */
function namesOf({ registry, serviceAccounts }: PublicTlsTarget['service']): readonly string[] {
  return registry === 'External' ? serviceAccounts : [];
}

function clientCertificate(settings: ClientTlsSettings, target: PublicTlsTarget): CommonTlsInit {
  if (settings.mode !== 'MUTUAL') return {};
  const credential = credentialOf(settings, target);
  if (credential !== undefined) {
    return { tlsCertificateSdsSecretConfigs: [adsSecret(credentialResourceName(credential))] };
  }
  const { clientCertificate: certificate, privateKey: key } = settings;
  if (!certificate || !key) return {};
  if (target.hasAgent) return { tlsCertificateSdsSecretConfigs: [fileCertificateSecret(certificate, key)] };
  return { tlsCertificates: [{ certificateChain: fileSource(certificate), privateKey: fileSource(key) }] };
}

function peerValidation(settings: ClientTlsSettings, names: readonly string[], target: PublicTlsTarget): CommonTlsInit {
  const validation: ValidationInit = {
    matchTypedSubjectAltNames: subjectAltNames(names),
    ...(settings.caCrl && { crl: fileSource(settings.caCrl) }),
  };
  // Validation rejects `insecureSkipVerify` together with anything that would be verified.
  if (settings.insecureSkipVerify && !settings.caCertificates) return {};
  if (target.roots !== undefined) {
    const trustedCa = { specifier: { case: 'inlineBytes', value: target.roots } } as const;
    return { validationContextType: { case: 'validationContext', value: { ...validation, trustedCa } } };
  }
  const credential = credentialOf(settings, target);
  if (credential !== undefined) return validationByRoots(adsSecret(rootsResourceName(credential)), validation);
  if (target.hasAgent) {
    const roots = settings.caCertificates || systemRoots;
    const { crl, ...otherFields } = validation;
    const revocationSecret =
      settings.caCrl && target.checksRevocationLists && revocationRootSecret(roots, settings.caCrl);
    return revocationSecret
      ? validationByRoots(revocationSecret, otherFields)
      : validationByRoots(fileRootSecret(roots), validation);
  }
  const trustedCa = fileSource(settings.caCertificates || systemRootsFile);
  return { validationContextType: { case: 'validationContext', value: { ...validation, trustedCa } } };
}

function credentialOf({ credentialName }: ClientTlsSettings, target: PublicTlsTarget): string | undefined {
  return target.mayRequestSecrets && credentialName ? credentialName : undefined;
}

function validationByRoots(roots: SdsSecretConfig, defaultValidationContext: ValidationInit): CommonTlsInit {
  return {
    validationContextType: {
      case: 'combinedValidationContext',
      value: { defaultValidationContext, validationContextSdsSecretConfig: roots },
    },
  };
}
