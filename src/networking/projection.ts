/** Selects the properties of a shape on which the lists of a type depend; shapes with equal projections share a list. */
import { identityText } from '../model/collections/weak-values.ts';
import type { ProxyShape } from '../model/proxy/proxy-shape.ts';
import { addressingKey } from '../model/proxy/service-addresses.ts';
import type { PushContext } from '../model/push-context/push-context.ts';
import type { SidecarScope } from '../model/push-context/sidecar-scope.ts';
import { mergeGateways } from './gateway/merge-gateways.ts';
import { gatewayName } from './gateway/placed-server.ts';
import { labelsText } from './inputs/input-text.ts';
import { type PolicyList, policyText } from './inputs/policies.ts';
import { includesAttemptCount } from './routes/plan/attempt-count.ts';
import { destinationsOfAll, labelsIfMatched, namespaceIfMatched } from './routes/translate/virtual-service-inputs.ts';
import { commonShapes } from './sharing/common-shape.ts';
import { differingHosts } from './sharing/differing-hosts.ts';

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
  const settings = `${patchProjection(shape, push)}~${includesAttemptCount(shape, push)}`;
  if (shape.type === 'router') return `router~${gatewayRoutesText(shape, push)}~${settings}`;
  const scope = push.sidecarScopeFor(shape);
  const labels = scope.egressListeners
    .map((listener) => labelsIfMatched(listener.virtualServices, shape))
    .find(Boolean);
  return [reachText(shape, push, scope), shape.dnsDomain, addressingKey(shape), labels ?? '', settings].join('~');
};

/** Inputs of a gateway's routes: servers, VirtualServices and destinations. Gateways with different labels and namespaces often have equal inputs. */
function gatewayRoutesText(shape: ProxyShape, push: PushContext): string {
  const { configNamespace } = shape;
  const names = [...new Set(push.gatewaysFor(shape).map(gatewayName))];
  const boundServices = names.map((name) => push.virtualServicesFor(name, configNamespace));
  const labels = boundServices.map((services) => labelsIfMatched(services, shape)).find(Boolean);
  const namespace = boundServices.map((services) => namespaceIfMatched(services, configNamespace)).find(Boolean);
  const [meshShape] = commonShapes(shape, push);
  const differingNames = meshShape && differingHosts(shape, meshShape, push);
  // Few hosts resolve differently in a namespace than in the mesh, and few of these hosts are destinations.
  const leadsToDiffering =
    differingNames === undefined ||
    [...differingNames].some((host) => boundServices.some((services) => destinationsOfAll(services).has(host)));
  return [
    identityText([mergeGateways(shape, push), ...boundServices]),
    labels ?? '',
    namespace ?? '',
    leadsToDiffering ? reachText(shape, push, push.sidecarScopeFor(shape)) : '',
  ].join('~');
}

export const patchProjection: Projection = (shape, push) =>
  `${policyProjection(shape, push, 'envoyFilters')}~${shape.runsWasm}~${JSON.stringify(shape.matchedMetadata)}`;

/** Credential names are resolved in the proxy's namespace. */
export const secretProjection: Projection = ({ configNamespace }) => configNamespace;

/** Names of the policies of some kinds that apply to the workload. Names are unique within a push context. */
function policyProjection(shape: ProxyShape, push: PushContext, ...lists: readonly PolicyList[]): string {
  return policyText(push.policiesFor(shape), lists);
}

function reachText({ configNamespace, labels }: ProxyShape, push: PushContext, { sidecar }: SidecarScope): string {
  const rules = push.destinationRulesSelecting(configNamespace, labels);
  return `${configNamespace}~${rules}~${sidecar === undefined ? '' : `${sidecar.namespace}/${sidecar.name}`}`;
}
