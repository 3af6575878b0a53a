/** The documented tasks, in the order of their run. */
import type { Task } from './context.ts';
import { egress } from './egress.ts';
import { gatewayApiIngress, ingressGateways } from './ingress.ts';
import { outlierDetectionTask } from './outlier-detection.ts';
import { circuitBreaking, localityLoadBalancing } from './resilience.ts';
import { authorization, jwt, mutualTlsMigration } from './security.ts';
import { faultInjection, mirroring, requestRouting, requestTimeouts, trafficShifting } from './traffic.ts';

export const tasks: readonly Task[] = [
  ...[requestRouting, trafficShifting, faultInjection, requestTimeouts, mirroring],
  ...[ingressGateways, gatewayApiIngress, egress, mutualTlsMigration, authorization],
  ...[localityLoadBalancing, circuitBreaking, jwt, outlierDetectionTask],
];
