import { anyUnpack } from '@bufbuild/protobuf/wkt';
import type { FilterChain } from '../../gen/envoy/config/listener/v3/listener_components_pb.ts';
import {
  type CertificateValidationContext,
  SubjectAltNameMatcher_SanType as SanType,
} from '../../gen/envoy/extensions/transport_sockets/tls/v3/common_pb.ts';
import {
  type DownstreamTlsContext,
  DownstreamTlsContextSchema,
} from '../../gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.ts';
import { UndecidedError } from './filters/filter-result.ts';
import type { Question } from './question.ts';
import { matchesString } from './string-matches.ts';

export interface TerminatedTls {
  /** Why the handshake fails; `undefined` if it succeeds. */
  readonly refusal?: string;
  readonly principal?: string;
}

/**
 * Assumes that every client certificate is issued by a trusted CA.
 *
 * @returns `undefined` if the chain does not terminate TLS
 */
export function terminatedTls({ transportSocket }: FilterChain, { tls }: Question): TerminatedTls | undefined {
  if (transportSocket === undefined) return undefined;
  if (tls === undefined) return { refusal: 'the filter chain expects TLS' };
  const context =
    transportSocket.configType.case === 'typedConfig' &&
    anyUnpack(transportSocket.configType.value, DownstreamTlsContextSchema);
  if (!context) return {};
  const { isRequested, validation } = validationOf(context);
  if (!isRequested) return {};
  const { principal } = tls;
  if (principal === undefined) {
    const isRequired = context.requireClientCertificate?.valueOf() === true;
    return isRequired ? { refusal: 'the filter chain requires a client certificate' } : {};
  }
  return isAccepted(principal, validation)
    ? { principal }
    : { refusal: `the filter chain accepts no client named ${principal}` };
}

function validationOf({ commonTlsContext }: DownstreamTlsContext): {
  readonly isRequested: boolean;
  readonly validation?: CertificateValidationContext | undefined;
} {
  const type = commonTlsContext?.validationContextType;
  switch (type?.case) {
    case 'validationContext':
      return { isRequested: true, validation: type.value };
    case 'combinedValidationContext':
      return { isRequested: true, validation: type.value.defaultValidationContext };
    default:
      return { isRequested: type?.case !== undefined };
  }
}

function isAccepted(principal: string, validation: CertificateValidationContext | undefined): boolean {
  if (validation === undefined) return true;
  if (validation.verifyCertificateHash.length + validation.verifyCertificateSpki.length > 0) {
    throw new UndecidedError('the filter chain accepts certificates by their hash');
  }
  const names = validation.matchTypedSubjectAltNames;
  if (names.length === 0) return true;
  const type = principal.includes('://') ? SanType.URI : SanType.DNS;
  return names.some(({ sanType, matcher }) => sanType === type && matcher && matchesString(matcher, principal));
}
