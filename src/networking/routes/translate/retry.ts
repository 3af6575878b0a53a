import { create } from '@bufbuild/protobuf';
import { type RetryPolicy, RetryPolicySchema } from '../../../gen/envoy/config/route/v3/route_components_pb.ts';
import { PreviousHostsPredicateSchema } from '../../../gen/envoy/extensions/retry/host/previous_hosts/v3/previous_hosts_pb.ts';
import { PreviousPrioritiesConfigSchema } from '../../../gen/envoy/extensions/retry/priority/previous_priorities/v3/previous_priorities_config_pb.ts';
import type { HttpRetry } from '../../../model/kinds/virtual-service/virtual-service.ts';
import { typedExtension } from '../../messages/any.ts';
import { duration, optionalDuration } from '../../messages/protobuf-duration.ts';

const defaultRetryOn = 'connect-failure,refused-stream,unavailable,cancelled,retriable-status-codes';
const defaultAttempts = 2;
const hostSelectionAttempts = 5n;

const previousHosts = typedExtension('envoy.retry_host_predicates.previous_hosts', PreviousHostsPredicateSchema);
const previousPriorities = typedExtension(
  'envoy.retry_priorities.previous_priorities',
  PreviousPrioritiesConfigSchema,
  {
    updateFrequency: 2,
  },
);

/**
 * Uses the settings of the route, the mesh, or the built-in policy, in this order.
 *
 * @param isSticky whether a consistent hash selects the host, which retries must keep
 */
export function retryPolicy(
  routeRetry: HttpRetry | undefined,
  mesh: HttpRetry | undefined,
  isSticky: boolean,
): RetryPolicy | undefined {
  const retry = { ...mesh, ...routeRetry };
  if (retry.attempts !== undefined && retry.attempts <= 0) return undefined;
  const { conditions, statusCodes } = splitRetryOn(retry.retryOn || defaultRetryOn);
  const avoidTriedHosts = !isSticky && retry.retryIgnorePreviousHosts !== false;
  return create(RetryPolicySchema, {
    retryOn: conditions,
    retriableStatusCodes: statusCodes,
    numRetries: retry.attempts ?? defaultAttempts,
    perTryTimeout: optionalDuration(retry.perTryTimeoutMs || undefined),
    ...(avoidTriedHosts && {
      retryHostPredicate: [previousHosts],
      hostSelectionRetryMaxAttempts: hostSelectionAttempts,
    }),
    ...(retry.backoffMs && { retryBackOff: { baseInterval: duration(retry.backoffMs) } }),
    ...(retry.retryRemoteLocalities && { retryPriority: previousPriorities }),
  });
}

/** Separates status codes, which are numbers among the conditions. */
function splitRetryOn(retryOn: string): { conditions: string; statusCodes: number[] } {
  const retryConditions = retryOn
    .split(',')
    .map((condition) => condition.trim())
    .filter(Boolean);
  const statusCodes = retryConditions.filter((condition) => /^\d{3}$/.test(condition)).map(Number);
  const conditions = retryConditions.filter((condition) => !/^\d{3}$/.test(condition));
  if (statusCodes.length > 0 && !conditions.includes('retriable-status-codes'))
    conditions.push('retriable-status-codes');
  return { conditions: conditions.join(','), statusCodes };
}
