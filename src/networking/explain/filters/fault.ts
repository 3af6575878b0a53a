/** Aborts end a share of the requests. Delays do not change the outcome. */
import type { FaultAbort, HTTPFault } from '../../../gen/envoy/extensions/filters/http/fault/v3/fault_pb.ts';
import {
  FractionalPercent_DenominatorType as Denominator,
  type FractionalPercent,
} from '../../../gen/envoy/type/v3/percent_pb.ts';
import { headerOf } from '../route-match.ts';
import { matchesHeader } from '../string-matches.ts';
import { type FilterResult, UndecidedError } from './filter-result.ts';
import type { Subject } from './subject.ts';

export function evaluateFault(
  { abort, headers, upstreamCluster }: HTTPFault,
  subject: Subject,
  clusters: readonly string[],
): FilterResult {
  if (abort === undefined || subject.request === undefined) return undefined;
  const { request } = subject;
  if (upstreamCluster !== '' && !clusters.includes(upstreamCluster)) return undefined;
  if (!headers.every((matcher) => matchesHeader(matcher, headerOf(request, matcher.name.toLowerCase()))))
    return undefined;
  const share = fractionOf(abort.percentage);
  if (share === 0) return undefined;
  const status = statusOf(abort);
  const grpcStatus = abort.errorType.case === 'grpcStatus' ? { grpcStatus: abort.errorType.value } : {};
  const reason = `the route injects a fault (abort of ${Math.round(share * 10_000) / 100} % of the requests)`;
  return {
    share,
    outcome: { kind: 'aborted', status, ...grpcStatus, flag: 'FI', details: 'fault_filter_abort', why: reason },
  };
}

function statusOf({ errorType }: FaultAbort): number {
  switch (errorType.case) {
    case 'httpStatus':
      return errorType.value;
    case 'grpcStatus':
      return httpStatuses[errorType.value] ?? 500;
    default:
      throw new UndecidedError('a request header selects the fault');
  }
}

/** HTTP status by gRPC status (Envoy: Grpc::Utility::grpcToHttpStatus). */
const httpStatuses: readonly number[] = [
  200, 499, 500, 400, 504, 404, 409, 403, 429, 400, 409, 400, 501, 500, 503, 500, 401,
];

const denominators: Readonly<Record<Denominator, number>> = {
  [Denominator.HUNDRED]: 100,
  [Denominator.TEN_THOUSAND]: 10_000,
  [Denominator.MILLION]: 1_000_000,
};

export function fractionOf(percent: FractionalPercent | undefined): number {
  return percent === undefined ? 0 : Math.min(1, percent.numerator / (denominators[percent.denominator] ?? 100));
}
