/** Where the rules of routes send requests. */
import type { Config } from '../../config/config.ts';
import type { BackendRef, RouteObject } from '../../kinds/gateway-api/http-route.ts';
import type { Destination } from '../../kinds/virtual-service.ts';
import type { Surroundings } from './surroundings.ts';

/** Names nobody has (RFC 6761 §6.4): no proxy has a cluster for it, so that requests for it are answered with an error. */
export const noDestination: Destination = { host: 'no-backend.invalid', port: { number: 65535 } };

/** Why there is no destination: as the Gateway API's condition ResolvedRefs says it, and for people. */
export interface MissingBackend {
  readonly reason: 'InvalidKind' | 'RefNotPermitted' | 'BackendNotFound';
  readonly missing: string;
}

/**
 * A destination, or why there is none.
 *
 * @param inMesh the route is over a Service: what its clients reach without it they may reach by it, and no namespace has to
 *   grant that (GEP-1294, "Namespace boundaries"). At a Gateway it would let strangers in.
 */
export function destinationOf(
  ref: BackendRef,
  route: Config<RouteObject>,
  around: Surroundings,
  inMesh: boolean,
): Destination | MissingBackend {
  const { group, kind, name, namespace = route.namespace, port } = ref;
  if (group === 'networking.istio.io' && kind === 'Hostname') {
    return { host: name, ...(port !== undefined && { port: { number: port } }) };
  }
  if (group !== '' || kind !== 'Service') return { reason: 'InvalidKind', missing: `${kind} ${name} is no Service` };
  const service = around.service(namespace, name);
  if (
    !inMesh &&
    !around.isGranted({ kind: route.kind, namespace: route.namespace }, { group, kind, name, namespace })
  ) {
    return {
      reason: 'RefNotPermitted',
      missing: `no ReferenceGrant of ${namespace} lets ${route.kind}s of ${route.namespace} send to Service ${name}`,
    };
  }
  const reason = 'BackendNotFound';
  if (service === undefined) return { reason, missing: `there is no Service ${namespace}/${name}` };
  if (!service.spec.spec.ports.some((one) => one.port === port)) {
    return { reason, missing: `Service ${namespace}/${name} has no port ${port}` };
  }
  return { host: around.hostOf(namespace, name), port: { number: port! } };
}
