import type { OutlierDetection } from '../../model/kinds/destinations/traffic-policy.ts';
import type { Features } from '../../model/mesh/features.ts';
import type { Endpoint, Service } from '../../model/services/service.ts';

/** Which endpoints are sent in addition to healthy ones. Terminating endpoints are never sent. */
export interface HealthSelection {
  /** Envoy does not use unhealthy endpoints, but needs them to compute the healthy share. */
  readonly sendsUnhealthyEndpoints: boolean;
  /** Draining endpoints retain their sticky sessions. */
  readonly sendsDrainingEndpoints: boolean;
  /** Endpoints with this label are treated as draining. */
  readonly drainingLabel: string;
}

export function healthSelection(
  service: Service,
  outlierDetection: OutlierDetection | undefined,
  features: Features,
): HealthSelection {
  return {
    sendsUnhealthyEndpoints: sendsUnhealthy(service, outlierDetection, features),
    sendsDrainingEndpoints: (service.labels[features.persistentSessionLabel] ?? '') !== '',
    drainingLabel: features.drainingLabel,
  };
}

/** With `trafficDistribution`, Envoy must know the share of unhealthy endpoints among the near ones. */
function sendsUnhealthy(
  { attributes }: Pick<Service, 'attributes'>,
  outlierDetection: OutlierDetection | undefined,
  { sendUnhealthy, autoSendUnhealthy }: Features,
): boolean {
  if (sendUnhealthy || attributes?.trafficDistribution !== undefined) return true;
  return autoSendUnhealthy && (outlierDetection?.minHealthPercent ?? 0) === 0;
}

export function withSentHealth(
  endpoint: Endpoint,
  { sendsUnhealthyEndpoints, sendsDrainingEndpoints, drainingLabel }: HealthSelection,
): Endpoint | undefined {
  switch (healthOf(endpoint, drainingLabel)) {
    case 'healthy':
      return endpoint;
    case 'unhealthy':
      return sendsUnhealthyEndpoints ? endpoint : undefined;
    case 'draining':
      if (!sendsDrainingEndpoints) return undefined;
      return endpoint.health === 'draining' ? endpoint : { ...endpoint, health: 'draining' };
    case 'terminating':
      return undefined;
  }
}

export function healthOf({ health, labels }: Endpoint, drainingLabel: string): Endpoint['health'] {
  const isDraining = health === 'healthy' && (labels[drainingLabel] ?? '') !== '';
  return isDraining ? 'draining' : health;
}
