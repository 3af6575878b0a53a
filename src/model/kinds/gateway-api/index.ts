import type { Decoder, FieldError } from '../../fields/decode.ts';
import type { Kind } from '../kind.ts';
import { decodeKnown, unknownFields } from '../unknown-fields.ts';
import { type BackendTlsPolicy, backendTlsPolicy, backendTlsWarnings } from './backend-tls-policy.ts';
import { gatewayApiGroup } from './fields.ts';
import { type GatewayClass, gatewayClass } from './gateway-class.ts';
import { grpcRouteObject } from './grpc-route.decode.ts';
import { httpRouteObject } from './http-route.decode.ts';
import type { RouteObject } from './http-route.ts';
import { literalStars } from './http-route-match.decode.ts';
import { kubernetesGateway, kubernetesGatewayWarnings } from './kubernetes-gateway.decode.ts';
import type { KubernetesGateway } from './kubernetes-gateway.ts';
import { l4RouteWarnings, tcpRouteObject, tlsRouteObject } from './l4-route.decode.ts';
import { type ReferenceGrant, referenceGrant } from './reference-grant.ts';

export interface SpecOfGatewayApiKind {
  readonly BackendTLSPolicy: BackendTlsPolicy;
  readonly GatewayClass: GatewayClass;
  readonly GRPCRoute: RouteObject;
  readonly HTTPRoute: RouteObject;
  readonly KubernetesGateway: KubernetesGateway;
  readonly ReferenceGrant: ReferenceGrant;
  readonly TCPRoute: RouteObject;
  readonly TLSRoute: RouteObject;
}

function kindRow<Name extends string, Spec extends object>(
  kind: Name,
  plural: string,
  decoder: Decoder<Spec>,
  extraOptions: Partial<Pick<Kind<Name, Spec>, 'writtenAs' | 'versions' | 'scope' | 'decode'>> & {
    readonly warnings?: (spec: Spec) => readonly FieldError[];
  } = {},
): Kind<Name, Spec> {
  const { warnings = () => [], ...otherOptions } = extraOptions;
  return {
    ...{ kind, plural, group: gatewayApiGroup, versions: ['v1', 'v1beta1'], scope: 'Namespaced', body: 'spec' },
    decoder,
    decode: (spec) => decodeKnown(decoder, spec),
    ...otherOptions,
    warnings: (spec) => [...unknownFields(spec), ...warnings(spec)],
  };
}

export const gatewayApiKinds: { readonly [K in keyof SpecOfGatewayApiKind]: Kind<K, SpecOfGatewayApiKind[K]> } = {
  BackendTLSPolicy: kindRow('BackendTLSPolicy', 'backendtlspolicies', backendTlsPolicy, {
    warnings: backendTlsWarnings,
    versions: ['v1', 'v1alpha3'],
    decode: (spec) => backendTlsPolicy(spec, ''),
  }),
  GatewayClass: kindRow('GatewayClass', 'gatewayclasses', gatewayClass, { scope: 'Cluster' }),
  GRPCRoute: kindRow('GRPCRoute', 'grpcroutes', grpcRouteObject, { versions: ['v1', 'v1alpha2'] }),
  HTTPRoute: kindRow('HTTPRoute', 'httproutes', httpRouteObject, {
    warnings: ({ rules }) => rules.flatMap(({ matches }, index) => literalStars(matches, `rules[${index}]`)),
  }),
  KubernetesGateway: kindRow('KubernetesGateway', 'gateways', kubernetesGateway, {
    writtenAs: 'Gateway',
    warnings: kubernetesGatewayWarnings,
  }),
  ReferenceGrant: kindRow('ReferenceGrant', 'referencegrants', referenceGrant, {
    versions: ['v1', 'v1beta1', 'v1alpha2'],
  }),
  TCPRoute: kindRow('TCPRoute', 'tcproutes', tcpRouteObject, {
    warnings: l4RouteWarnings,
    versions: ['v1', 'v1alpha2'],
  }),
  TLSRoute: kindRow('TLSRoute', 'tlsroutes', tlsRouteObject, {
    warnings: l4RouteWarnings,
    versions: ['v1', 'v1beta1', 'v1alpha3', 'v1alpha2'],
  }),
};
