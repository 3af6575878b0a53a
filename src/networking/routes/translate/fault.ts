import type { Any } from '@bufbuild/protobuf/wkt';
import {
  type FaultAbortSchema,
  HTTPFaultSchema,
} from '../../../gen/envoy/extensions/filters/http/fault/v3/fault_pb.ts';
import type { FractionalPercent } from '../../../gen/envoy/type/v3/percent_pb.ts';
import { grpcStatusNames } from '../../../model/fields/grpc-status.ts';
import type { HttpFaultInjection, Percent } from '../../../model/kinds/virtual-service/virtual-service.ts';
import { pack } from '../../messages/any.ts';
import type { Init } from '../../messages/init.ts';
import { fractionalPercent } from '../../messages/percent.ts';
import { duration } from '../../messages/protobuf-duration.ts';

export const faultFilter = 'envoy.filters.http.fault';

/** Returns `undefined` if Envoy supports neither the delay nor the abort. */
export function faultConfig({ delay, abort }: HttpFaultInjection): Any | undefined {
  const errorType = abort && abortErrorType(abort);
  const delayMs = delay?.fixedDelayMs;
  if (errorType === undefined && delayMs === undefined) return undefined;
  return pack(HTTPFaultSchema, {
    ...(delayMs !== undefined && {
      delay: {
        faultDelaySecifier: { case: 'fixedDelay', value: duration(delayMs) },
        percentage: fractionOf(delay?.percentage),
      },
    }),
    ...(errorType && { abort: { errorType, percentage: fractionOf(abort?.percentage) } }),
  });
}

/** Without a percentage, no request is affected (Istio API reference). */
function fractionOf(percentage: Percent = { value: 0 }): FractionalPercent {
  return fractionalPercent(percentage);
}

function abortErrorType(
  abort: NonNullable<HttpFaultInjection['abort']>,
): Init<typeof FaultAbortSchema>['errorType'] | undefined {
  if (abort.httpStatus !== undefined) return { case: 'httpStatus', value: abort.httpStatus };
  if (abort.grpcStatus === undefined) return undefined;
  const code = grpcStatusNames.indexOf(abort.grpcStatus.toUpperCase());
  return code === -1 ? undefined : { case: 'grpcStatus', value: code };
}
