/** Which unhealthy endpoints Envoy receives (spec/discovery.md §8.3, "excluded" and `health_status`; §1.4). */

import type { OutlierDetection } from '../../model/kinds/destinations/traffic-policy.ts';
import type { Features } from '../../model/mesh/features.ts';
import type { Endpoint, Service } from '../../model/services/service.ts';

/** Which endpoints are included although they are not healthy. Terminating endpoints never are. */
export interface HealthSelection {
  /** Include unhealthy endpoints. Envoy does not use them, but knows the healthy share. */
  readonly unhealthy: boolean;
  /** Include draining endpoints, which keep their sessions. */
  readonly draining: boolean;
  /** An endpoint with this label is draining, independent of its registry. Empty if no label has this meaning. */
  readonly drainingLabel: string;
}

export function healthSelection(
  service: Service,
  outlierDetection: OutlierDetection | undefined,
  features: Features,
): HealthSelection {
  return {
    unhealthy: sendsUnhealthy(service, outlierDetection, features),
    draining: (service.labels[features.persistentSessionLabel] ?? '') !== '',
    drainingLabel: features.drainingLabel,
  };
}

/**
 * Whether unhealthy endpoints are included. With `trafficDistribution`, the proxy must know when near endpoints become
 * unhealthy. With `minHealthPercent`, Envoy uses all endpoints if few are healthy, so ones that were never ready must
 * not be included.
 */
function sendsUnhealthy(
  { attributes }: Pick<Service, 'attributes'>,
  outlierDetection: OutlierDetection | undefined,
  { sendUnhealthy, autoSendUnhealthy }: Features,
): boolean {
  if (sendUnhealthy || attributes?.trafficDistribution !== undefined) return true;
  return autoSendUnhealthy && (outlierDetection?.minHealthPercent ?? 0) === 0;
}

/** The endpoint with its health, `undefined` if it is not included. */
export function withSentHealth(
  endpoint: Endpoint,
  { unhealthy, draining, drainingLabel }: HealthSelection,
): Endpoint | undefined {
  switch (healthOf(endpoint, drainingLabel)) {
    case 'healthy':
      return endpoint;
    case 'unhealthy':
      return unhealthy ? endpoint : undefined;
    case 'draining':
      if (!draining) return undefined;
      return endpoint.health === 'draining' ? endpoint : { ...endpoint, health: 'draining' };
    case 'terminating':
      return undefined;
  }
}

/** The endpoint's health, with its draining label taken into account. */
export function healthOf({ health, labels }: Endpoint, drainingLabel: string): Endpoint['health'] {
  const drains = health === 'healthy' && (labels[drainingLabel] ?? '') !== '';
  return drains ? 'draining' : health;
}
