/** Converts Envoy's own responses to gRPC requests: HTTP status 200, with the error in `grpc-status`. */
import type { RequestOutcome } from './outcome.ts';
import type { RoutedRequest } from './route-match.ts';

export function isGrpc({ headers }: Pick<RoutedRequest, 'headers'>): boolean {
  return /^application\/grpc(?:$|[+;])/.test(headers['content-type'] ?? '');
}

export function asGrpcResponse(outcome: RequestOutcome): RequestOutcome {
  switch (outcome.kind) {
    case 'forwarded':
    case 'accepted':
    case 'closed':
    case 'not decided':
    case 'other':
    case 'preflight':
      return outcome;
    case 'divided':
      return {
        ...outcome,
        shares: outcome.shares.map((one) => ({ ...one, outcome: asGrpcResponse(one.outcome) })),
      };
    // An abort with a gRPC status needs no conversion.
    default:
      return outcome.status === undefined
        ? outcome
        : { ...outcome, status: 200, grpcStatus: outcome.grpcStatus ?? grpcStatuses[outcome.status] ?? unknownStatus };
  }
}

/** gRPC statuses by HTTP status (gRPC's docs: http-grpc-status-mapping). */
const grpcStatuses: Readonly<Record<number, number>> = {
  400: 13,
  401: 16,
  403: 7,
  404: 12,
  429: 14,
  502: 14,
  503: 14,
  504: 14,
};
const unknownStatus = 2;
