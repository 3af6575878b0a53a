import type { Config } from '../../config/config.ts';
import { isShortName } from '../../fields/hostname.ts';
import type { BackendRef, RouteObject } from '../../kinds/gateway-api/http-route.ts';
import type { Destination } from '../../kinds/virtual-service/virtual-service.ts';
import type { TranslationContext, TranslationWarning } from './translation-context.ts';

/** A reserved name (RFC 6761 §6.4). It has no cluster, so requests get an error response. */
export const noDestination: Destination = { host: 'no-backend.invalid', port: { number: 65535 } };

/** Why there is no destination, as reason and message of the Gateway API's condition ResolvedRefs. */
export interface MissingBackend {
  readonly reason: 'InvalidKind' | 'RefNotPermitted' | 'BackendNotFound';
  readonly missingText: string;
  readonly warning: TranslationWarning;
}

/**
 * @param isForMesh whether the route is for a Service: its clients could reach the backend directly, so no ReferenceGrant is needed (GEP-1294,
 * "Namespace boundaries"). At a Gateway, the grant protects the backend from external clients.
 */
export function destinationOf(
  ref: BackendRef,
  route: Config<RouteObject>,
  context: TranslationContext,
  isForMesh: boolean,
): Destination | MissingBackend {
  const { group, kind, name, namespace = route.namespace, port } = ref;
  const missingGrantBackend = (namespaceName: string, service: string): MissingBackend | undefined => {
    const referenceSource = { kind: route.kind, namespace: route.namespace };
    const serviceTarget = { group: '', kind: 'Service', name: service, namespace: namespaceName };
    if (isForMesh || context.isGranted(referenceSource, serviceTarget)) return undefined;
    const missingGrant = `no ReferenceGrant in namespace ${namespaceName} allows ${route.kind}s of namespace ${route.namespace} to refer to Service ${service}`;
    const warning: TranslationWarning = {
      code: 'REFERENCE_NOT_GRANTED',
      absent: { kind: 'ReferenceGrant', namespace: namespaceName },
    };
    return { reason: 'RefNotPermitted', missingText: missingGrant, warning };
  };
  if (group === 'networking.istio.io' && kind === 'Hostname') {
    // Short names are qualified here, because the generated object is in the Gateway's namespace.
    const host = isShortName(name) ? context.hostOf(route.namespace, name) : name;
    const service = context.serviceOfHost(host);
    const refusal = service && missingGrantBackend(service.namespace, service.name);
    return refusal ?? { host, ...(port !== undefined && { port: { number: port } }) };
  }
  if (group !== '' || kind !== 'Service') {
    return {
      reason: 'InvalidKind',
      missingText: `the backend must be a Service, got ${kind} ${name}`,
      warning: { code: 'NOT_PROGRAMMED' },
    };
  }
  const service = context.service(namespace, name);
  const refusal = missingGrantBackend(namespace, name);
  if (refusal !== undefined) return refusal;
  const reason = 'BackendNotFound';
  if (service === undefined) {
    const warning: TranslationWarning = { code: 'HOST_NOT_FOUND', absent: { kind: 'Service', namespace } };
    return { reason, missingText: `there is no Service ${namespace}/${name}`, warning };
  }
  if (!service.spec.spec.ports.some((servicePort) => servicePort.port === port)) {
    return {
      reason,
      missingText: `Service ${namespace}/${name} has no port ${port}`,
      warning: { code: 'PORT_NOT_FOUND' },
    };
  }
  return { host: context.hostOf(namespace, name), port: { number: port! } };
}
