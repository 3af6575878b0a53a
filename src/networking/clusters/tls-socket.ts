import { isIP } from 'node:net';
import {
  type CertificateValidationContextSchema,
  SubjectAltNameMatcher_SanType,
} from '../../gen/envoy/extensions/transport_sockets/tls/v3/common_pb.ts';
import {
  type CommonTlsContextSchema,
  UpstreamTlsContextSchema,
} from '../../gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.ts';
import { type TypedExtension, typedExtension } from '../messages/any.ts';
import type { Init } from '../messages/init.ts';

export type CommonTlsInit = Init<typeof CommonTlsContextSchema>;
export type ValidationInit = Init<typeof CertificateValidationContextSchema>;

export function tlsSocket(sni: string, commonTls: CommonTlsInit): TypedExtension {
  return typedExtension('envoy.transport_sockets.tls', UpstreamTlsContextSchema, { sni, commonTlsContext: commonTls });
}

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

/** Envoy reads the file only once, when it creates the cluster or listener. */
export function fileSource(path: string): { specifier: { case: 'filename'; value: string } } {
  return { specifier: { case: 'filename', value: path } };
}
