/**
 * What of a shape whole lists of a type depend on: shapes of one projection get one list. Workloads of a namespace
 * differ in their labels, which hardly anything that they send to depends on.
 */
import { identityText } from '../model/collections/weak-values.ts';
import type { ProxyShape } from '../model/proxy/proxy-shape.ts';
import { addressingKey } from '../model/proxy/service-addresses.ts';
import type { PushContext } from '../model/push-context/push-context.ts';
import type { SidecarScope } from '../model/push-context/sidecar-scope.ts';
import { mergeGateways } from './gateway/merge-gateways.ts';
import { gatewayName } from './gateway/placed-server.ts';
import { labelsText } from './inputs/input-text.ts';
import { type PolicyList, policyText } from './inputs/policies.ts';
import { countsAttempts } from './routes/plan/attempt-count.ts';
import { destinationsOfAll, labelsThatCount, namespaceThatCounts } from './routes/translate/virtual-service-inputs.ts';
import { commonShapes } from './sharing/common-shape.ts';
import { differingHosts } from './sharing/differing-hosts.ts';

/** Undefined for a shape whose list is its own. */
export type Projection = (shape: ProxyShape, push: PushContext) => string | undefined;

export const endpointProjection: Projection = (shape, push) => {
  if (shape.type === 'router') return undefined;
  const { locality, network, clusterId, nodeName } = shape;
  const labels = push.ordersEndpointsByLabels ? labelsText(shape.labels) : '';
  return [reachText(shape, push, push.sidecarScopeFor(shape)), locality, network, clusterId, nodeName, labels].join(
    '~',
  );
};

export const routeProjection: Projection = (shape, push) => {
  const settings = `${patchProjection(shape, push)}~${countsAttempts(shape, push)}`;
  if (shape.type === 'router') return `router~${gatewayRoutesText(shape, push)}~${settings}`;
  const scope = push.sidecarScopeFor(shape);
  const labels = scope.egressListeners
    .map((listener) => labelsThatCount(listener.virtualServices, shape))
    .find(Boolean);
  return [reachText(shape, push, scope), shape.dnsDomain, addressingKey(shape), labels ?? '', settings].join('~');
};

/**
 * What a gateway's routes are made from: its servers, the virtual services bound to them, and what those lead to. Gateways of
 * other labels, and of other namespaces, mostly have the same.
 */
function gatewayRoutesText(shape: ProxyShape, push: PushContext): string {
  const { configNamespace } = shape;
  const names = [...new Set(push.gatewaysFor(shape).map(gatewayName))];
  const bound = names.map((name) => push.virtualServicesFor(name, configNamespace));
  const labels = bound.map((services) => labelsThatCount(services, shape)).find(Boolean);
  const namespace = bound.map((services) => namespaceThatCounts(services, configNamespace)).find(Boolean);
  const [everybody] = commonShapes(shape, push);
  const differing = everybody && differingHosts(shape, everybody, push);
  // Few hosts mean something else to a namespace than to everybody, and fewer of them are led to.
  const leadsToOwn =
    differing === undefined ||
    [...differing].some((host) => bound.some((services) => destinationsOfAll(services).has(host)));
  return [
    identityText([mergeGateways(shape, push), ...bound]),
    labels ?? '',
    namespace ?? '',
    leadsToOwn ? reachText(shape, push, push.sidecarScopeFor(shape)) : '',
  ].join('~');
}

/** Who is patched alike. */
export const patchProjection: Projection = (shape, push) =>
  `${policyProjection(shape, push, 'envoyFilters')}~${shape.runsWasm}~${JSON.stringify(shape.matchedMetadata)}`;

/** A secret is what a name means in the proxy's namespace. */
export const secretProjection: Projection = ({ configNamespace }) => configNamespace;

/** Which objects of some kinds hold for the shape's workload: within one context their names say it. */
function policyProjection(shape: ProxyShape, push: PushContext, ...lists: readonly PolicyList[]): string {
  return policyText(push.policiesFor(shape), lists);
}

function reachText({ configNamespace, labels }: ProxyShape, push: PushContext, { sidecar }: SidecarScope): string {
  const rules = push.destinationRulesSelecting(configNamespace, labels);
  return `${configNamespace}~${rules}~${sidecar === undefined ? '' : `${sidecar.namespace}/${sidecar.name}`}`;
}
