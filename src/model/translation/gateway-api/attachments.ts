/** Which HTTPRoutes are at which listeners and Services, and for which hosts (the Gateway API's ParentReference). */
import type { Steps } from '../../../runtime/turns.ts';
import type { Config } from '../../config/config.ts';
import { gatewayApiGroup } from '../../kinds/gateway-api/fields.ts';
import type { HttpRouteObject, ParentReference } from '../../kinds/gateway-api/http-route.ts';
import type { KubernetesService } from '../../kinds/kubernetes/service.ts';
import { type HttpListener, isTakenByNarrower, type KnownGateway } from './gateway-listeners.ts';
import { namedListeners } from './named-listeners.ts';
import type { Surroundings } from './surroundings.ts';

/** A route at a listener. */
export interface ListenerAttachment {
  readonly route: Config<HttpRouteObject>;
  readonly listener: HttpListener;
  /** At least one. */
  readonly hosts: readonly string[];
}

/** A route over a Service, for its clients in the mesh. */
export interface ServiceAttachment {
  readonly route: Config<HttpRouteObject>;
  readonly service: Config<KubernetesService>;
  /** Absent: all. */
  readonly port?: number;
}

export interface Attachments {
  readonly toListeners: readonly ListenerAttachment[];
  readonly toServices: readonly ServiceAttachment[];
}

/** @param gateways by `namespace/name` */
export function* attaching(
  routes: readonly Config<HttpRouteObject>[],
  gateways: ReadonlyMap<string, KnownGateway>,
  around: Surroundings,
): Steps<Attachments> {
  const toListeners: ListenerAttachment[] = [];
  const toServices: ServiceAttachment[] = [];
  for (const route of routes) {
    yield;
    const { parentRefs } = route.spec;
    if (parentRefs.length === 0) around.warn(route, 'parentRefs', 'there are none: the route is not in force');
    const known = new Set<HttpListener>();
    for (const [index, parent] of parentRefs.entries()) {
      const warn = (message: string): void => around.warn(route, `parentRefs[${index}]`, message);
      if (parent.group === gatewayApiGroup && parent.kind === 'Gateway') {
        for (const attachment of atGateway(route, parent, gateways, around, warn)) {
          if (known.has(attachment.listener)) continue;
          known.add(attachment.listener);
          toListeners.push(attachment);
        }
      } else if (parent.group === '' && parent.kind === 'Service') {
        const attachment = overService(route, parent, around, warn);
        if (attachment !== undefined) toServices.push(attachment);
      } else warn(`${parent.kind} ${parent.name} is neither a Gateway nor a Service`);
    }
  }
  return { toListeners, toServices };
}

type Warn = (message: string) => void;

function atGateway(
  route: Config<HttpRouteObject>,
  { namespace = route.namespace, name, sectionName, port }: ParentReference,
  gateways: ReadonlyMap<string, KnownGateway>,
  around: Surroundings,
  warn: Warn,
): ListenerAttachment[] {
  const gateway = gateways.get(`${namespace}/${name}`);
  if (gateway === undefined) warn(`there is no Gateway ${namespace}/${name}`);
  // What is another controller's is its own to tell, and a class that nobody knows was told of.
  if (!gateway?.isOurs) return [];
  const named = namedListeners(gateway.listeners, sectionName, port);
  const isOpen = ({ listener: { allowedRoutes } }: HttpListener): boolean => {
    const { namespaces, kinds } = allowedRoutes;
    const takesKind =
      kinds === undefined ||
      kinds.length === 0 ||
      kinds.some((kind) => kind.group === gatewayApiGroup && kind.kind === 'HTTPRoute');
    return takesKind && around.allowsNamespace(namespaces, namespace, route.namespace);
  };
  const attachments = named.sharing(route.spec.hostnames).flatMap(({ listener, hosts }): ListenerAttachment[] => {
    if (!isOpen(listener)) return [];
    // Without those names by which requests never come to this listener.
    const own = [...hosts].filter((host) => !isTakenByNarrower(host, listener, gateway.listeners));
    return own.length === 0 ? [] : [{ route, listener, hosts: own }];
  });
  if (attachments.length === 0) {
    const wanted = [sectionName, port !== undefined && `port ${port}`].filter(Boolean).join(' of ');
    if (named.listeners.length === 0) {
      warn(`Gateway ${namespace}/${name} has no HTTP listener ${wanted}`.trimEnd());
    } else if (named.listeners.some(isOpen)) {
      warn(`no such listener of Gateway ${namespace}/${name} has one of the route's hostnames`);
    } else warn(`no such listener of Gateway ${namespace}/${name} takes HTTPRoutes of namespace ${route.namespace}`);
  }
  return attachments;
}

function overService(
  route: Config<HttpRouteObject>,
  { namespace = route.namespace, name, port }: ParentReference,
  around: Surroundings,
  warn: Warn,
): ServiceAttachment | undefined {
  const service = around.service(namespace, name);
  if (service === undefined) {
    warn(`there is no Service ${namespace}/${name}`);
    return undefined;
  }
  if (port !== undefined && !service.spec.spec.ports.some((one) => one.port === port)) {
    warn(`Service ${namespace}/${name} has no port ${port}`);
    return undefined;
  }
  return { route, service, ...(port !== undefined && { port }) };
}
