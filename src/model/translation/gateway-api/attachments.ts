import type { Steps } from '../../../runtime/turns.ts';
import type { Config } from '../../config/config.ts';
import { gatewayApiGroup } from '../../kinds/gateway-api/fields.ts';
import type { ParentReference, RouteObject } from '../../kinds/gateway-api/http-route.ts';
import type { Listener } from '../../kinds/gateway-api/kubernetes-gateway.ts';
import type { KubernetesService } from '../../kinds/kubernetes/service.ts';
import { type Attachment, AttachmentBudget } from './attachment-budget.ts';
import { isServedByNarrower, type KnownGateway, type KnownListener, routeKindsOf } from './gateway-listeners.ts';
import { namedListeners } from './named-listeners.ts';
import type { TranslationContext, TranslationWarning } from './translation-context.ts';

export interface ListenerAttachment {
  readonly route: Config<RouteObject>;
  readonly listener: KnownListener;
  /** Contains at least one host. */
  readonly hosts: readonly string[];
  /** The route exceeds its namespace's limit, so requests get a 503 response. */
  readonly isClosed?: true;
}

/** A route for a Service, which applies to clients in the mesh. */
export interface ServiceAttachment {
  readonly route: Config<RouteObject>;
  readonly service: Config<KubernetesService>;
  /** Absent for all ports. */
  readonly port?: number;
  readonly isClosed?: true;
}

export interface Attachments {
  readonly toListeners: readonly ListenerAttachment[];
  readonly toServices: readonly ServiceAttachment[];
  /** Number of routes that {@link AttachmentBudget} detaches from at least one parent. */
  readonly beyondLimit: number;
}

/** Why a route is not attached to a parent, as reason and message of the Gateway API's condition Accepted. */
export interface ParentRefusal {
  readonly reason: 'NoMatchingParent' | 'NoMatchingListenerHostname' | 'NotAllowedByListeners' | 'LimitExceeded';
  readonly message: string;
  readonly warning?: TranslationWarning;
}

/** `foreign` if the parent belongs to another controller or to none. */
export type ParentOutcome = 'attached' | 'foreign' | ParentRefusal;

export type ParentOutcomeListener = (route: Config<RouteObject>, index: number, outcome: ParentOutcome) => void;

/** @param gateways by `namespace/name` */
export function* attachInSteps(
  routes: readonly Config<RouteObject>[],
  gateways: ReadonlyMap<string, KnownGateway>,
  context: TranslationContext,
  onOutcome?: ParentOutcomeListener,
): Steps<Attachments> {
  const listenerAttachments: ListenerAttachment[] = [];
  const serviceAttachments: ServiceAttachment[] = [];
  const budget = new AttachmentBudget();
  const attachedRoutes: { route: Config<RouteObject>; index: number; gatewayNamespace: string | undefined }[] = [];
  for (const route of routes) {
    yield;
    const { parentRefs } = route.spec;
    if (parentRefs.length === 0)
      context.warn(route, 'parentRefs', 'the list is empty, so the route does not apply: set a Gateway or Service');
    const attachedListeners = new Set<KnownListener>();
    for (const [index, parent] of parentRefs.entries()) {
      const warn = (message: string, warning?: TranslationWarning): void =>
        context.warn(route, `parentRefs[${index}]`, message, warning);
      if (parent.group === gatewayApiGroup && parent.kind === 'Gateway') {
        const gatewayNamespace = parent.namespace ?? route.namespace;
        const gatewayAttachment = attachToGateway(route, parent, gateways, context);
        if (gatewayAttachment === 'no gateway') {
          const advice = 'correct the name, or create the Gateway';
          warn(`there is no Gateway ${gatewayNamespace}/${parent.name}: ${advice}`, {
            ...{ code: 'GATEWAY_NOT_FOUND', absent: { kind: 'KubernetesGateway', namespace: gatewayNamespace } },
          });
        }
        if (typeof gatewayAttachment === 'string') onOutcome?.(route, index, 'foreign');
        else if ('reason' in gatewayAttachment) {
          warn(gatewayAttachment.message);
          onOutcome?.(route, index, gatewayAttachment);
        } else {
          attachedRoutes.push({ route, index, gatewayNamespace });
          for (const attachment of gatewayAttachment) {
            if (attachedListeners.has(attachment.listener)) continue;
            attachedListeners.add(attachment.listener);
            budget.add(route, gatewayNamespace, attachment.hosts.length);
            listenerAttachments.push(attachment);
          }
        }
      } else if (parent.group === '' && parent.kind === 'Service') {
        const serviceAttachment = attachToService(route, parent, context);
        if ('reason' in serviceAttachment) {
          warn(serviceAttachment.message, serviceAttachment.warning);
          onOutcome?.(route, index, serviceAttachment);
        } else {
          attachedRoutes.push({ route, index, gatewayNamespace: undefined });
          budget.add(route, undefined, 1);
          serviceAttachments.push(serviceAttachment);
        }
      } else {
        warn(`must be a Gateway or a Service, got ${parent.kind} ${parent.name}`);
        onOutcome?.(route, index, 'foreign');
      }
    }
  }
  const excessRoutes = budget.apply();
  for (const { route, index, gatewayNamespace } of attachedRoutes) {
    const message = excessRoutes.messageFor(route, gatewayNamespace);
    if (message !== undefined) context.warn(route, `parentRefs[${index}]`, message, { code: 'LIMIT_EXCEEDED' });
    onOutcome?.(route, index, message === undefined ? 'attached' : { reason: 'LimitExceeded', message });
    yield;
  }
  if (excessRoutes.size === 0)
    return { toListeners: listenerAttachments, toServices: serviceAttachments, beyondLimit: 0 };
  return {
    toListeners: listenerAttachments.flatMap((attachment) =>
      limitedAttachment(attachment, excessRoutes.attachmentOf(attachment.route, attachment.listener.gateway.namespace)),
    ),
    toServices: serviceAttachments.flatMap((attachment) =>
      limitedAttachment(attachment, excessRoutes.attachmentOf(attachment.route, undefined)),
    ),
    beyondLimit: excessRoutes.size,
  };
}

function limitedAttachment<One extends ListenerAttachment | ServiceAttachment>(
  attachment: One,
  attachmentState: Attachment,
): One[] {
  if (attachmentState === 'detached') return [];
  return [attachmentState === 'closed' ? { ...attachment, isClosed: true } : attachment];
}

function attachToGateway(
  route: Config<RouteObject>,
  { namespace = route.namespace, name, sectionName, port }: ParentReference,
  gateways: ReadonlyMap<string, KnownGateway>,
  context: TranslationContext,
): ListenerAttachment[] | ParentRefusal | 'no gateway' | 'foreign' {
  const gateway = gateways.get(`${namespace}/${name}`);
  if (gateway === undefined) return 'no gateway';
  // Other controllers report on their Gateways; unknown classes are already reported.
  if (!gateway.isImplementedHere) return 'foreign';
  const namedByRoute = namedListeners(gateway.listeners, sectionName, port);
  const acceptsRoute = ({ listener }: KnownListener): boolean => {
    const { namespaces, kinds } = listener.allowedRoutes;
    const isKindAllowed =
      kinds === undefined ||
      kinds.length === 0 ||
      kinds.some((kind) => kind.group === gatewayApiGroup && kind.kind === route.kind);
    return (
      isKindAllowed &&
      routeKindsOf(listener).includes(route.kind) &&
      context.allowsNamespace(namespaces, namespace, route.namespace)
    );
  };
  const attachments = namedByRoute
    .listenersSharing(route.spec.hostnames)
    .flatMap(({ listener, hosts }): ListenerAttachment[] => {
      if (!acceptsRoute(listener)) return [];
      // Omits hosts whose requests go to a listener with a narrower hostname.
      const reachableHosts = [...hosts].filter((host) => !isServedByNarrower(host, listener, gateway.listeners));
      return reachableHosts.length === 0 ? [] : [{ route, listener, hosts: reachableHosts }];
    });
  if (attachments.length > 0) return attachments;
  const refusal = (reason: ParentRefusal['reason'], message: string): ParentRefusal => ({ reason, message });
  if (namedByRoute.listeners.length === 0) {
    const requestedText = [sectionName, port !== undefined && `port ${port}`].filter(Boolean).join(' of ');
    const isReferenced = (candidate: Listener): boolean =>
      (sectionName ?? candidate.name) === candidate.name && (port ?? candidate.port) === candidate.port;
    const reason = gateway.writtenListeners.some(isReferenced) ? 'NotAllowedByListeners' : 'NoMatchingParent';
    const listenerText = requestedText === '' ? 'listener' : `listener ${requestedText}`;
    return refusal(reason, `Gateway ${namespace}/${name} has no valid ${listenerText}`);
  }
  const parentText = `no matching listener of Gateway ${namespace}/${name}`;
  if (namedByRoute.listeners.some(acceptsRoute))
    return refusal('NoMatchingListenerHostname', `${parentText} has a hostname of the route`);
  return refusal(
    'NotAllowedByListeners',
    `${parentText} allows ${route.kind}s of namespace ${route.namespace} (allowedRoutes)`,
  );
}

function attachToService(
  route: Config<RouteObject>,
  { namespace = route.namespace, name, port }: ParentReference,
  context: TranslationContext,
): ServiceAttachment | ParentRefusal {
  const reason = 'NoMatchingParent';
  // TLS connections use the Service's own names.
  if (route.kind === 'TLSRoute')
    return { reason, message: 'the parent of a TLSRoute must be a Gateway, got a Service' };
  const service = context.service(namespace, name);
  if (service === undefined) {
    const warning: TranslationWarning = { code: 'HOST_NOT_FOUND', absent: { kind: 'Service', namespace } };
    return { reason, message: `there is no Service ${namespace}/${name}`, warning };
  }
  if (port !== undefined && !service.spec.spec.ports.some((servicePort) => servicePort.port === port)) {
    return { reason, message: `Service ${namespace}/${name} has no port ${port}`, warning: { code: 'PORT_NOT_FOUND' } };
  }
  return { route, service, ...(port !== undefined && { port }) };
}
