import type { EndpointSlice, SliceConditions, SliceEndpoint } from '../../kinds/kubernetes/endpoint-slice.ts';
import { endpointId } from '../same-endpoint.ts';
import type { Endpoint } from '../service.ts';
import type { EndpointTemplate, Workload } from '../workload.ts';

export interface SliceContext {
  readonly namespace: string;
  /** Without a selector, endpoints are managed externally and not changed. */
  readonly hasSelector: boolean;
  readonly publishNotReady: boolean;
  /** Whether draining endpoints remain, so that their sessions continue. */
  readonly keepsDraining: boolean;
  podNamed(name: string): Workload | undefined;
  podAt(address: string): Workload | undefined;
  templateAt(address: string, nodeName: string | undefined): EndpointTemplate;
}

export interface SliceEndpoints {
  readonly endpoints: readonly Endpoint[];
  /** Referenced pods that are not yet known, as `namespace/name`. Their endpoints are omitted. */
  readonly pendingPods: readonly string[];
  readonly bareAddresses: readonly string[];
}

/** @param slices in a stable order; duplicate endpoints are merged, and ready if any slice reports them ready */
export function sliceEndpoints(slices: readonly EndpointSlice[], context: SliceContext): SliceEndpoints {
  const endpoints = new Map<string, AddressEndpoints>();
  const pendingPods: string[] = [];
  const addressesWithoutPod: string[] = [];
  for (const slice of slices) {
    // Skips host names, which DNS servers resolve instead of proxies.
    if (slice.addressType === 'FQDN') continue;
    const ports = portsOf(slice);
    for (const sliceEndpoint of slice.endpoints) {
      const health = healthOf(sliceEndpoint.conditions, context);
      for (const address of sliceEndpoint.addresses) {
        const templateResult = templateOf(sliceEndpoint, address, context);
        if (templateResult.template === undefined) {
          pendingPods.push(templateResult.pod!);
          continue;
        }
        if (templateResult.pod === undefined && context.hasSelector) addressesWithoutPod.push(address);
        const { template } = templateResult;
        const portEndpoints = ports.map(({ name, port }) => ({
          ...template,
          address,
          health,
          port,
          servicePortName: name,
        }));
        const endpointsAtAddress = endpoints.get(address);
        endpoints.set(
          address,
          endpointsAtAddress === undefined ? portEndpoints : joinEndpoints(endpointsAtAddress, portEndpoints),
        );
      }
    }
  }
  const joinedEndpoints: Endpoint[] = [];
  for (const addressEndpoints of endpoints.values())
    for (const endpoint of addressEndpoints.values()) joinedEndpoints.push(endpoint);
  return { endpoints: joinedEndpoints, pendingPods: pendingPods, bareAddresses: addressesWithoutPod };
}

/** Removes duplicates, and entries without a number, which mean all ports. */
function portsOf({ ports }: EndpointSlice): { readonly name: string; readonly port: number }[] {
  const numberedPorts = ports.flatMap(({ name, port }) => (port === undefined ? [] : [{ name, port }]));
  return [
    ...new Map(
      numberedPorts.map((numberedPort) => [`${numberedPort.name}|${numberedPort.port}`, numberedPort]),
    ).values(),
  ];
}

/** Endpoints of one address. A map by ID only if several slices contain the address, which is rare. */
type AddressEndpoints = readonly Endpoint[] | Map<string, Endpoint>;

/** While an address moves between slices, two slices contain it and one may be outdated. */
function joinEndpoints(
  endpointsAtAddress: AddressEndpoints,
  additionalEndpoints: readonly Endpoint[],
): Map<string, Endpoint> {
  const endpointById =
    endpointsAtAddress instanceof Map
      ? endpointsAtAddress
      : new Map(endpointsAtAddress.map((endpoint) => [endpointId(endpoint), endpoint]));
  for (const endpoint of additionalEndpoints) {
    const id = endpointId(endpoint);
    const existingEndpoint = endpointById.get(id);
    const isExistingOutdated =
      existingEndpoint !== undefined && existingEndpoint.health !== 'healthy' && endpoint.health === 'healthy';
    if (existingEndpoint === undefined || isExistingOutdated) endpointById.set(id, endpoint);
  }
  return endpointById;
}

function templateOf(
  sliceEndpoint: SliceEndpoint,
  address: string,
  context: SliceContext,
): { readonly pod?: string; readonly template?: EndpointTemplate } {
  // Computed lazily, because most addresses are pods.
  const endpointWithoutPod = () => ({ template: context.templateAt(address, sliceEndpoint.nodeName) });
  if (!context.hasSelector) return endpointWithoutPod();
  const { targetRef } = sliceEndpoint;
  if (targetRef?.kind === 'Pod' && targetRef.name !== '') {
    const namespace = targetRef.namespace || context.namespace;
    // A Service selects only pods of its own namespace. Identities of other pods must not become valid for this service.
    if (namespace !== context.namespace) return endpointWithoutPod();
    const pod = context.podNamed(targetRef.name);
    return { pod: `${namespace}/${targetRef.name}`, ...(pod && { template: withHostname(pod, sliceEndpoint) }) };
  }
  const pod = context.podAt(address);
  return pod === undefined
    ? endpointWithoutPod()
    : { pod: `${pod.namespace}/${pod.name}`, template: withHostname(pod, sliceEndpoint) };
}

/** A slice contains the host name for pods of a headless service. */
function withHostname({ template }: Workload, { hostname }: SliceEndpoint): EndpointTemplate {
  return hostname === undefined || hostname === template.hostname ? template : { ...template, hostname };
}

function healthOf(conditions: SliceConditions, context: SliceContext): Endpoint['health'] {
  const { ready = true, serving = false, terminating = false } = conditions;
  if (ready) return 'healthy';
  if (terminating) return serving && context.keepsDraining ? 'draining' : 'terminating';
  return context.publishNotReady ? 'healthy' : 'unhealthy';
}
