/** How connections to a cluster are secured (spec/discovery.md §8.2, tls and auto mTLS rows). */

import { isIP } from 'node:net';
import type { ClusterSchema } from '../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import { RawBufferSchema } from '../../gen/envoy/extensions/transport_sockets/raw_buffer/v3/raw_buffer_pb.ts';
import {
  type CertificateValidationContextSchema,
  SubjectAltNameMatcher_SanType,
  TlsParameters_TlsProtocol,
} from '../../gen/envoy/extensions/transport_sockets/tls/v3/common_pb.ts';
import {
  type CommonTlsContextSchema,
  UpstreamTlsContextSchema,
} from '../../gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.ts';
import type { ClientTlsSettings } from '../../model/kinds/traffic-policy.ts';
import type { Service } from '../../model/service.ts';
import { type TypedExtension, typedExtension } from '../any.ts';
import { adsSecret, agentSecret } from '../config-source.ts';
import type { Init } from '../init.ts';

type CommonTlsInit = Init<typeof CommonTlsContextSchema>;
type ValidationInit = Init<typeof CertificateValidationContextSchema>;
type TransportFields = Pick<Init<typeof ClusterSchema>, 'transportSocket' | 'transportSocketMatches'>;

/** Where Debian, Alpine and the images built on them keep the roots of the public CAs. */
const systemRootsFile = '/etc/ssl/certs/ca-certificates.crt';

export interface UpstreamTls extends TransportFields {
  /** The SNI is the host that the request names, because none was given. */
  readonly autoSni: boolean;
  readonly autoSanValidation: boolean;
}

export interface UpstreamTlsTarget {
  readonly service: Service;
  /** The cluster's name in the SNI form. */
  readonly sniName: string;
  /** SPIFFE ids of the workloads behind it. */
  readonly identities: readonly string[];
  readonly http2: boolean;
  /** Original-destination clusters know no endpoint metadata to match sockets by. */
  readonly originalDestination: boolean;
  /** The mesh asks for mutual TLS by itself and the proxy has certificates. */
  readonly autoMutualTls: boolean;
}

const plaintext: UpstreamTls = { autoSni: false, autoSanValidation: false };

export function upstreamTls(settings: ClientTlsSettings | undefined, target: UpstreamTlsTarget): UpstreamTls {
  switch (settings?.mode) {
    case 'SIMPLE':
    case 'MUTUAL':
      return publicTls(settings, target);
    case 'ISTIO_MUTUAL':
      return { ...plaintext, transportSocket: workloadSocket(settings, target) };
    case 'DISABLE':
      return plaintext;
    default:
      return automaticTls(target);
  }
}

/** Mutual TLS to the endpoints that take it, plaintext to the others. */
function automaticTls(target: UpstreamTlsTarget): UpstreamTls {
  if (!target.autoMutualTls || target.service.meshExternal || target.originalDestination) return plaintext;
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

function publicTls(settings: ClientTlsSettings, { service, http2 }: UpstreamTlsTarget): UpstreamTls {
  const names = settings.subjectAltNames?.length ? settings.subjectAltNames : service.serviceAccounts;
  const autoSni = settings.sni === undefined || settings.sni === '';
  return {
    autoSni,
    autoSanValidation: autoSni && names.length === 0 && !settings.insecureSkipVerify,
    transportSocket: tlsSocket(settings.sni ?? '', {
      ...clientCertificate(settings),
      ...peerValidation(settings, names),
      alpnProtocols: http2 ? ['h2'] : [],
    }),
  };
}

function clientCertificate(settings: ClientTlsSettings): CommonTlsInit {
  if (settings.mode !== 'MUTUAL') return {};
  if (settings.credentialName) {
    return { tlsCertificateSdsSecretConfigs: [adsSecret(`kubernetes://${settings.credentialName}`)] };
  }
  if (!settings.clientCertificate || !settings.privateKey) return {};
  return {
    tlsCertificates: [{ certificateChain: file(settings.clientCertificate), privateKey: file(settings.privateKey) }],
  };
}

function peerValidation(settings: ClientTlsSettings, names: readonly string[]): CommonTlsInit {
  const validation: ValidationInit = {
    matchTypedSubjectAltNames: subjectAltNames(names),
    ...(settings.caCrl && { crl: file(settings.caCrl) }),
  };
  if (settings.credentialName) {
    return {
      validationContextType: {
        case: 'combinedValidationContext',
        value: {
          defaultValidationContext: validation,
          validationContextSdsSecretConfig: adsSecret(`kubernetes://${settings.credentialName}-cacert`),
        },
      },
    };
  }
  const roots = settings.caCertificates || systemRootsFile;
  if (settings.insecureSkipVerify && !settings.caCertificates) return {};
  return {
    validationContextType: { case: 'validationContext', value: { ...validation, trustedCa: file(roots) } },
  };
}

/** Mutual TLS with the workload's own certificate, which the agent serves. */
function workloadSocket(
  settings: Pick<ClientTlsSettings, 'sni' | 'subjectAltNames'>,
  target: UpstreamTlsTarget,
): TypedExtension {
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
  });
}

function tlsSocket(sni: string, common: CommonTlsInit): TypedExtension {
  return typedExtension('envoy.transport_sockets.tls', UpstreamTlsContextSchema, {
    sni,
    commonTlsContext: {
      ...common,
      tlsParams: {
        tlsMinimumProtocolVersion: TlsParameters_TlsProtocol.TLSv1_2,
        tlsMaximumProtocolVersion: TlsParameters_TlsProtocol.TLSv1_3,
      },
    },
  });
}

/** Exact names; Envoy wants to be told of which kind each is. */
export function subjectAltNames(names: readonly string[]): NonNullable<ValidationInit['matchTypedSubjectAltNames']> {
  return names.map((name) => ({
    sanType: name.includes('://')
      ? SubjectAltNameMatcher_SanType.URI
      : isIP(name) !== 0
        ? SubjectAltNameMatcher_SanType.IP_ADDRESS
        : SubjectAltNameMatcher_SanType.DNS,
    matcher: { matchPattern: { case: 'exact', value: name } },
  }));
}

/** A file that Envoy reads once, when the cluster or listener is made. */
export function file(path: string): { specifier: { case: 'filename'; value: string } } {
  return { specifier: { case: 'filename', value: path } };
}
