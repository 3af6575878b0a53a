/**
 * What of a shape whole lists of a type depend on: shapes of one projection get one list. Workloads of a namespace
 * differ in their labels, which hardly anything that they send to depends on.
 */
import type { ProxyShape } from '../model/proxy/proxy-shape.ts';
import { addressingKey } from '../model/proxy/service-addresses.ts';
import type { PushContext } from '../model/push-context/push-context.ts';
import type { SidecarScope } from '../model/push-context/sidecar-scope.ts';
import { labelsText } from './inputs/input-text.ts';
import { type PolicyList, policyText } from './inputs/policies.ts';
import { countsAttempts } from './routes/attempt-count.ts';
import { labelsThatCount } from './routes/virtual-service-inputs.ts';

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
  if (shape.type === 'router') return undefined;
  const scope = push.sidecarScopeFor(shape);
  const labels = scope.egressListeners
    .map((listener) => labelsThatCount(listener.virtualServices, shape))
    .find(Boolean);
  return [
    reachText(shape, push, scope),
    shape.dnsDomain,
    addressingKey(shape),
    labels ?? '',
    patchProjection(shape, push),
    String(countsAttempts(shape, push)),
  ].join('~');
};

/** Who is patched alike. */
export const patchProjection: Projection = (shape, push) =>
  `${policyProjection(shape, push, 'envoyFilters')}~${JSON.stringify(shape.askedMetadata)}`;

/** A secret is what a name means in the proxy's namespace. */
export const secretProjection: Projection = ({ configNamespace }) => configNamespace;

/** Which objects of some kinds hold for the shape's workload: within one context their names say it. */
export function policyProjection(shape: ProxyShape, push: PushContext, ...lists: readonly PolicyList[]): string {
  return policyText(push.policiesFor(shape), lists);
}

function reachText({ configNamespace, labels }: ProxyShape, push: PushContext, { sidecar }: SidecarScope): string {
  const rules = push.destinationRulesSelecting(configNamespace, labels);
  return `${configNamespace}~${rules}~${sidecar === undefined ? '' : `${sidecar.namespace}/${sidecar.name}`}`;
}
