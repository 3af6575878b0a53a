import type { ClusterSchema } from '../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import { RawBufferSchema } from '../../gen/envoy/extensions/transport_sockets/raw_buffer/v3/raw_buffer_pb.ts';
import type { ClientTlsSettings } from '../../model/kinds/destinations/traffic-policy.ts';
import type { MeshConfig } from '../../model/mesh/mesh-config.ts';
import type { BackendTls } from '../../model/push-context/backend-tls.ts';
import type { Service } from '../../model/services/service.ts';
import { type TypedExtension, typedExtension } from '../messages/any.ts';
import { agentSecret } from '../messages/config-source-message.ts';
import type { Init } from '../messages/init.ts';
import { tlsParameters, workloadClientParameters } from '../messages/tls-parameters.ts';
import { publicTls } from './public-tls.ts';
import { subjectAltNames, tlsSocket } from './tls-socket.ts';

type TransportFields = Pick<Init<typeof ClusterSchema>, 'transportSocket' | 'transportSocketMatches'>;

export interface UpstreamTls extends TransportFields {
  readonly autoSni: boolean;
  readonly autoSanValidation: boolean;
}

export interface UpstreamTlsTarget {
  readonly service: Service;
  readonly sniName: string;
  readonly identities: readonly string[];
  readonly http2: boolean;
  /** Whether auto mTLS applies to no endpoint, to endpoints whose metadata announce it, or to all endpoints. */
  readonly automatic: 'never' | 'by endpoint' | 'always';
  readonly hasCertificate: boolean;
  readonly checksRevocationLists: boolean;
  readonly mayRequestSecrets: boolean;
  readonly mesh: MeshConfig;
}

const plaintext: UpstreamTls = { autoSni: false, autoSanValidation: false };

/**
 * The transport socket that a BackendTLSPolicy requires. If the policy cannot be satisfied, connections fail, so that
 * nothing is sent in plaintext.
 */
export function backendTlsSocket({ hostname, names, roots }: BackendTls, target: UpstreamTlsTarget): UpstreamTls {
  if (roots === undefined) return { ...plaintext, transportSocket: rejectingSocket(hostname) };
  const settings: ClientTlsSettings = { mode: 'SIMPLE', sni: hostname, subjectAltNames: names };
  return publicTls(settings, { ...target, hasAgent: target.hasCertificate, ...(roots !== 'system' && { roots }) });
}

export function upstreamTls(settings: ClientTlsSettings | undefined, target: UpstreamTlsTarget): UpstreamTls {
  switch (settings?.mode) {
    case 'SIMPLE':
    case 'MUTUAL':
      return publicTls(settings, { ...target, hasAgent: target.hasCertificate });
    case 'ISTIO_MUTUAL':
      return { ...plaintext, transportSocket: workloadSocket(settings, target) };
    case 'DISABLE':
      return plaintext;
    default:
      return automaticTls(target);
  }
}

function automaticTls(target: UpstreamTlsTarget): UpstreamTls {
  switch (target.automatic) {
    case 'never':
      return plaintext;
    case 'always':
      return { ...plaintext, transportSocket: workloadSocket({}, target) };
    case 'by endpoint':
      return {
        ...plaintext,
        transportSocketMatches: [
          { name: 'tlsMode-istio', match: { tlsMode: 'istio' }, transportSocket: workloadSocket({}, target) },
          {
            name: 'tlsMode-disabled',
            match: {},
            transportSocket: typedExtension('envoy.transport_sockets.raw_buffer', RawBufferSchema),
          },
        ],
      };
  }
}

function workloadSocket(
  settings: Pick<ClientTlsSettings, 'sni' | 'subjectAltNames'>,
  target: UpstreamTlsTarget,
): TypedExtension {
  if (!target.hasCertificate) return rejectingSocket(settings.sni || target.sniName);
  const names = settings.subjectAltNames?.length ? settings.subjectAltNames : target.identities;
  return tlsSocket(settings.sni || target.sniName, {
    tlsCertificateSdsSecretConfigs: [agentSecret('default')],
    validationContextType: {
      case: 'combinedValidationContext',
      value: {
        defaultValidationContext: { matchTypedSubjectAltNames: subjectAltNames(names) },
        validationContextSdsSecretConfig: agentSecret('ROOTCA'),
      },
    },
    alpnProtocols: ['istio-peer-exchange', 'istio', ...(target.http2 ? ['h2'] : [])],
    tlsParams: workloadClientParameters(target.mesh.meshMTLS),
  });
}

/**
 * This TLS socket trusts no certificate. A proxy without a certificate uses it for destinations that require mutual TLS. Connections then fail
 * instead of using plaintext or waiting indefinitely.
 */
function rejectingSocket(sni: string): TypedExtension {
  const noCertificate = '0'.repeat(64);
  return tlsSocket(sni, {
    validationContextType: { case: 'validationContext', value: { verifyCertificateHash: [noCertificate] } },
    tlsParams: tlsParameters(undefined),
  });
}
