import { create } from '@bufbuild/protobuf';
import {
  type OutlierDetection,
  OutlierDetectionSchema,
} from '../../gen/envoy/config/cluster/v3/outlier_detection_pb.ts';
import type { OutlierDetection as OutlierRule } from '../../model/kinds/destinations/traffic-policy.ts';
import { optionalDuration } from '../messages/protobuf-duration.ts';

/**
 * A threshold of 0 disables a check, but a percentage of 0 means "unset". Success rate ejection is always off, because DestinationRules cannot
 * configure it.
 */
export function outlierDetection(rule: OutlierRule): OutlierDetection {
  return create(OutlierDetectionSchema, {
    consecutive5xx: rule.consecutive5xxErrors,
    enforcingConsecutive5xx: enforcingPercent(rule.consecutive5xxErrors),
    consecutiveGatewayFailure: rule.consecutiveGatewayErrors,
    enforcingConsecutiveGatewayFailure: enforcingPercent(rule.consecutiveGatewayErrors),
    enforcingSuccessRate: 0,
    interval: optionalDuration(rule.intervalMs),
    baseEjectionTime: optionalDuration(rule.baseEjectionTimeMs),
    maxEjectionPercent: rule.maxEjectionPercent || undefined,
    splitExternalLocalOriginErrors: rule.splitExternalLocalOriginErrors ?? false,
    ...(rule.splitExternalLocalOriginErrors && {
      consecutiveLocalOriginFailure: rule.consecutiveLocalOriginFailures,
      enforcingConsecutiveLocalOriginFailure: enforcingPercent(rule.consecutiveLocalOriginFailures),
      enforcingLocalOriginSuccessRate: 0,
    }),
  });
}

function enforcingPercent(threshold: number | undefined): number | undefined {
  return threshold === undefined ? undefined : threshold > 0 ? 100 : 0;
}
