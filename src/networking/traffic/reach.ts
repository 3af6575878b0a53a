import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { MergedDestinationRule } from '../../model/push-context/resolved-rules.ts';
import type { Service } from '../../model/services/service.ts';

export interface ProxyReach {
  /** Oldest first. */
  readonly services: readonly Service[];
  serviceByHostname(hostname: string): Service | undefined;
  destinationRuleFor(service: Service): MergedDestinationRule | undefined;
  hasBackendTls(service: Service): boolean;
}

/** Returns the services of a sidecar's scope, or for a gateway, all services exported to its namespace. */
export function proxyReachOf(shape: ProxyShape, push: PushContext): ProxyReach {
  if (shape.type === 'sidecar') {
    const scope = push.sidecarScopeFor(shape);
    const { configNamespace, labels } = shape;
    return {
      services: scope.services,
      serviceByHostname: (hostname) => scope.serviceByHostname(hostname),
      destinationRuleFor: (service) => push.destinationRuleFor(configNamespace, service, labels),
      hasBackendTls: () => false,
    };
  }
  const namespace = shape.configNamespace;
  return {
    // If several namespaces define a host, contains the services of one of them.
    services: push.sidecarScopeFor(shape).services,
    serviceByHostname: (hostname) => push.serviceFor(hostname, namespace),
    destinationRuleFor: (service) => push.destinationRuleFor(namespace, service, shape.labels),
    hasBackendTls: (service) => push.backendTls.hasPolicyFor(service),
  };
}
