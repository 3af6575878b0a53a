/** From the EndpointSlices of a service to its endpoints (spec/discovery.md §5.4). Pure. */
import type { EndpointSlice, SliceConditions, SliceEndpoint } from '../../kinds/kubernetes/endpoint-slice.ts';
import { endpointId } from '../same-endpoint.ts';
import type { Endpoint } from '../service.ts';
import type { EndpointTemplate, Workload } from '../workload.ts';

/** What a service's endpoints are made of beside the slices. */
export interface SliceSurroundings {
  readonly namespace: string;
  /** The service has a selector. Without one endpoints are used as given: somebody else keeps them. */
  readonly hasSelector: boolean;
  /** Unready endpoints count as ready. */
  readonly publishNotReady: boolean;
  /** Endpoints that drain may still be of use. */
  readonly drains: boolean;
  /** A pod of the service's namespace; undefined if there is none of this name. */
  podNamed(name: string): Workload | undefined;
  /** A pod of the service's namespace. */
  podAt(address: string): Workload | undefined;
  /** What is known of an address without a pod. */
  templateAt(address: string, nodeName: string | undefined): EndpointTemplate;
}

export interface SliceEndpoints {
  readonly endpoints: readonly Endpoint[];
  /** `namespace/name` of the pods that are meant and not known yet: their endpoints are left out. */
  readonly pending: readonly string[];
  /** Addresses that no pod was found for. */
  readonly bare: readonly string[];
}

/** @param slices in a stable order; an endpoint that several have counts once, and as ready where one of them says so */
export function sliceEndpoints(slices: readonly EndpointSlice[], around: SliceSurroundings): SliceEndpoints {
  const endpoints = new Map<string, OfAddress>();
  const pending: string[] = [];
  const bare: string[] = [];
  for (const slice of slices) {
    // Names are for a DNS server to resolve, not for a proxy.
    if (slice.addressType === 'FQDN') continue;
    const ports = portsOf(slice);
    for (const given of slice.endpoints) {
      const health = healthOf(given.conditions, around);
      for (const address of given.addresses) {
        const found = templateOf(given, address, around);
        if (found.template === undefined) {
          pending.push(found.pod!);
          continue;
        }
        if (found.pod === undefined && around.hasSelector) bare.push(address);
        const { template } = found;
        const made = ports.map(({ name, port }) => ({ ...template, address, health, port, servicePortName: name }));
        const known = endpoints.get(address);
        endpoints.set(address, known === undefined ? made : joined(known, made));
      }
    }
  }
  const all: Endpoint[] = [];
  for (const ofAddress of endpoints.values()) for (const endpoint of ofAddress.values()) all.push(endpoint);
  return { endpoints: all, pending, bare };
}

/** Without those that mean all ports; each once. */
function portsOf({ ports }: EndpointSlice): { readonly name: string; readonly port: number }[] {
  const known = ports.flatMap(({ name, port }) => (port === undefined ? [] : [{ name, port }]));
  return [...new Map(known.map((one) => [`${one.name}|${one.port}`, one])).values()];
}

/** The endpoints of one address; by what they are as soon as two slices have it, which few do. */
type OfAddress = readonly Endpoint[] | Map<string, Endpoint>;

/** While an address goes from one slice to another both have it, and one of them may be behind. Takes as long as there is more. */
function joined(known: OfAddress, more: readonly Endpoint[]): Map<string, Endpoint> {
  const byId = known instanceof Map ? known : new Map(known.map((endpoint) => [endpointId(endpoint), endpoint]));
  for (const endpoint of more) {
    const id = endpointId(endpoint);
    const before = byId.get(id);
    const isBehind = before !== undefined && before.health !== 'healthy' && endpoint.health === 'healthy';
    if (before === undefined || isBehind) byId.set(id, endpoint);
  }
  return byId;
}

function templateOf(
  given: SliceEndpoint,
  address: string,
  around: SliceSurroundings,
): { readonly pod?: string; readonly template?: EndpointTemplate } {
  // Most addresses are of pods: only the others need it.
  const bare = () => ({ template: around.templateAt(address, given.nodeName) });
  if (!around.hasSelector) return bare();
  const { targetRef } = given;
  if (targetRef?.kind === 'Pod' && targetRef.name !== '') {
    const namespace = targetRef.namespace || around.namespace;
    // A Service selects pods of its own namespace. Another pod's identity is not this service's to accept.
    if (namespace !== around.namespace) return bare();
    const pod = around.podNamed(targetRef.name);
    return { pod: `${namespace}/${targetRef.name}`, ...(pod && { template: withHostname(pod, given) }) };
  }
  const pod = around.podAt(address);
  return pod === undefined ? bare() : { pod: `${pod.namespace}/${pod.name}`, template: withHostname(pod, given) };
}

/** A slice says the host name of a pod of a headless service again. */
function withHostname({ template }: Workload, { hostname }: SliceEndpoint): EndpointTemplate {
  return hostname === undefined || hostname === template.hostname ? template : { ...template, hostname };
}

function healthOf(conditions: SliceConditions, around: SliceSurroundings): Endpoint['health'] {
  const { ready = true, serving = false, terminating = false } = conditions;
  if (ready) return 'healthy';
  if (terminating) return serving && around.drains ? 'draining' : 'terminating';
  return around.publishNotReady ? 'healthy' : 'unhealthy';
}
