/** Converts Envoy's own responses to gRPC requests: HTTP status 200, with the error in `grpc-status`. */
import type { RequestOutcome } from './outcome.ts';
import type { RoutedRequest } from './route-match.ts';

export function isGrpc({ headers }: Pick<RoutedRequest, 'headers'>): boolean {
  return /^application\/grpc(?:$|[+;])/.test(headers['content-type'] ?? '');
}

export function toGrpcResponse(requestOutcome: RequestOutcome): RequestOutcome {
  switch (requestOutcome.kind) {
    case 'forwarded':
    case 'accepted':
    case 'closed':
    case 'not decided':
    case 'other':
    case 'preflight':
      return requestOutcome;
    case 'divided':
      return {
        ...requestOutcome,
        shares: requestOutcome.shares.map((outcomeShare) => ({
          ...outcomeShare,
          outcome: toGrpcResponse(outcomeShare.outcome),
        })),
      };
    // An abort with a gRPC status needs no conversion.
    default:
      return requestOutcome.status === undefined
        ? requestOutcome
        : {
            ...requestOutcome,
            status: 200,
            grpcStatus: requestOutcome.grpcStatus ?? grpcStatuses[requestOutcome.status] ?? unknownStatus,
          };
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
