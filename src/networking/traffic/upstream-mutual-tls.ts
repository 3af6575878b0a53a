import { peerModeOf } from '../../model/push-context/mutual-tls-mode.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { MergedDestinationRule } from '../../model/push-context/resolved-rules.ts';
import type { Endpoint, Service } from '../../model/services/service.ts';
import { type EffectivePolicy, effectivePolicy } from './traffic-policy.ts';

const lastSecuredEndpoints = new WeakMap<
  readonly Endpoint[],
  { plaintextEndpoints: string; endpoints: readonly Endpoint[] }
>();

const endpointsByPush = new WeakMap<PushContext, WeakMap<readonly Endpoint[], readonly Endpoint[]>>();

/**
 * Sets `tlsMode: 'disabled'` where the workload accepts only plaintext on the endpoint's port. Returns the same list until endpoints or modes change.
 */
export function endpointsAsSecured(endpoints: readonly Endpoint[], push: PushContext): readonly Endpoint[] {
  if (!push.disablesMutualTls || endpoints.length === 0) return endpoints;
  let endpointsByList = endpointsByPush.get(push);
  if (endpointsByList === undefined) {
    endpointsByList = new WeakMap();
    endpointsByPush.set(push, endpointsByList);
  }
  let result = endpointsByList.get(endpoints);
  if (result === undefined) {
    result = secureEndpoints(endpoints, push);
    endpointsByList.set(endpoints, result);
  }
  return result;
}

function secureEndpoints(endpoints: readonly Endpoint[], push: PushContext): readonly Endpoint[] {
  const plaintextOnlyEndpoints = new Set(endpoints.filter((endpoint) => refusesMutualTls(endpoint, push)));
  if (plaintextOnlyEndpoints.size === 0) return endpoints;
  const text = endpoints.flatMap((endpoint, index) => (plaintextOnlyEndpoints.has(endpoint) ? [index] : [])).join();
  const cachedEndpoints = lastSecuredEndpoints.get(endpoints);
  if (cachedEndpoints?.plaintextEndpoints === text) return cachedEndpoints.endpoints;
  const result = endpoints.map((endpoint) =>
    plaintextOnlyEndpoints.has(endpoint) ? { ...endpoint, tlsMode: 'disabled' as const } : endpoint,
  );
  lastSecuredEndpoints.set(endpoints, { plaintextEndpoints: text, endpoints: result });
  return result;
}

function refusesMutualTls({ tlsMode, namespace, labels, port }: Endpoint, push: PushContext): boolean {
  return tlsMode === 'istio' && peerModeOf(push.peerModesFor(namespace, labels), port) === 'DISABLE';
}

/**
 * For a service outside the mesh, or in a namespace that disables mutual TLS, the result is `never`. PeerAuthentications with a selector affect
 * single endpoints instead.
 *
 * @param originalDestination whether all connections of the cluster use the same TLS settings, so that every endpoint must accept mutual TLS
 */
export function automaticMutualTls(
  service: Service,
  originalDestination: boolean,
  push: PushContext,
): 'never' | 'by endpoint' | 'always' {
  if (!push.mesh.enableAutoMtls || service.meshExternal) return 'never';
  if (push.disablesMutualTls && push.peerModesFor(service.namespace, noLabels).mode === 'DISABLE') return 'never';
  if (!originalDestination) return 'by endpoint';
  return allAcceptMutualTls(endpointsOfService(service, push)) ? 'always' : 'never';
}

export function isMutualTlsTried({ tls }: EffectivePolicy, { meshExternal }: Service, { mesh }: PushContext): boolean {
  if (tls?.mode !== undefined) return tls.mode === 'ISTIO_MUTUAL';
  return mesh.enableAutoMtls && !meshExternal;
}

export function isMutualTlsTriedAt(
  {
    service,
    rule,
    subset,
    port,
  }: {
    readonly service: Service;
    readonly rule: MergedDestinationRule | undefined;
    readonly subset: string;
    readonly port: number;
  },
  push: PushContext,
): boolean {
  return isMutualTlsTried(effectivePolicy(rule?.config.spec, subset, port), service, push);
}

export function automaticMutualTlsText(service: Service, push: PushContext): string {
  return `${automaticMutualTls(service, false, push)}~${automaticMutualTls(service, true, push)}`;
}

const noLabels: Readonly<Record<string, string>> = {};

function endpointsOfService({ hostname, namespace }: Service, push: PushContext): readonly Endpoint[] {
  return endpointsAsSecured(push.endpointsOf(hostname, namespace), push);
}

const mutualTlsSupport = new WeakMap<readonly Endpoint[], boolean>();

function allAcceptMutualTls(endpoints: readonly Endpoint[]): boolean {
  let cachedResult = mutualTlsSupport.get(endpoints);
  if (cachedResult === undefined) {
    cachedResult = endpoints.length > 0 && endpoints.every(({ tlsMode }) => tlsMode === 'istio');
    mutualTlsSupport.set(endpoints, cachedResult);
  }
  return cachedResult;
}
