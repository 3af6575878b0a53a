/** Which endpoints are told of, by how they are (spec/discovery.md §8.3, "excluded" and `health_status`; §1.4). */

import type { OutlierDetection } from '../../model/kinds/destinations/traffic-policy.ts';
import type { Features } from '../../model/mesh/features.ts';
import type { Endpoint, Service } from '../../model/services/service.ts';

/** What is told of the endpoints of a cluster that are not healthy. Those that terminate are never told of. */
export interface HealthSelection {
  /** Endpoints that are not ready are told of as such: Envoy sends them nothing, and knows what share of all is well. */
  readonly unhealthy: boolean;
  /** Endpoints that drain keep the sessions that they have. */
  readonly draining: boolean;
  /** An endpoint with this label drains, whatever its registry says. Empty: no label says so. */
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
 * Whether endpoints that are not ready are sent. A proxy that keeps to near endpoints must know when these are ill. A rule with
 * a `minHealthPercent` wants Envoy to use all endpoints when few are well: those that never were ready must not be among them.
 */
function sendsUnhealthy(
  { attributes }: Pick<Service, 'attributes'>,
  outlierDetection: OutlierDetection | undefined,
  { sendUnhealthy, autoSendUnhealthy }: Features,
): boolean {
  if (sendUnhealthy || attributes?.trafficDistribution !== undefined) return true;
  return autoSendUnhealthy && (outlierDetection?.minHealthPercent ?? 0) === 0;
}

/** The endpoint as it is told of; undefined when it is not. */
export function asSent(
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

/** An endpoint's health with its draining label taken into account. */
export function healthOf({ health, labels }: Endpoint, drainingLabel: string): Endpoint['health'] {
  const drains = health === 'healthy' && (labels[drainingLabel] ?? '') !== '';
  return drains ? 'draining' : health;
}
