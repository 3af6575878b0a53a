/**
 * Reports patches of EnvoyFilters that match nothing at the gateways and sidecars in files, by generating their resources. Only `validate` uses this;
 * a control plane knows the results of patches at its proxies (`src/discovery/monitor/diagnostics/proxy-warnings.ts`).
 */
import * as E from 'fp-ts/lib/Either.js';
import type { Config } from '../../../model/config/config.ts';
import { isHttp } from '../../../model/fields/protocol.ts';
import type { EnvoyFilter, EnvoyPatch } from '../../../model/kinds/envoy-filter/envoy-filter.ts';
import { parseNode } from '../../../model/node/parse-node.ts';
import type { NodeType } from '../../../model/node/proxy.ts';
import { type ProxyShape, shapeOf } from '../../../model/proxy/proxy-shape.ts';
import { matchesSelector } from '../../../model/services/label-match.ts';
import { mergeGateways } from '../../../networking/gateway/merge-gateways.ts';
import { buildClusters, buildListeners, buildRoutes, patchStatus } from '../../../networking/index.ts';
import type { CheckSources, ConfigWarning } from '../config-warning.ts';
import { isGatewayByItself, isGatewayPod } from '../known-objects.ts';
import { isInjected } from '../services/injected-pods.ts';

type Labels = Readonly<Record<string, string>>;
type CheckSourcesOfFiles = Pick<CheckSources, 'context' | 'configs' | 'knownObjects'>;

/** EnvoyFilters that apply to more proxies are not checked. */
const maxProxies = 16;

/** Contexts for which files suffice. Inbound listeners of a sidecar depend on its workload. */
const checkedContexts: readonly string[] = ['GATEWAY', 'SIDECAR_OUTBOUND'];
const otherTargets: readonly string[] = ['BOOTSTRAP', 'EXTENSION_CONFIG'];

export function* unappliedPatches(sources: CheckSourcesOfFiles): Generator<ConfigWarning> {
  const generatedNames = new Set<string>();
  for (const config of sources.configs.EnvoyFilter) {
    if (config.standsFor !== undefined || config.spec.targetRefs !== undefined) continue;
    const nodeTypes = selectedTypes(config, sources);
    for (const [index, patch] of config.spec.configPatches.entries()) {
      const otherType = typeWithoutContext(patch, nodeTypes);
      if (otherType !== undefined) {
        yield {
          code: 'PATCH_NOT_APPLIED',
          config,
          ...otherTypeText(patch, index, otherType, 'workloads of these files'),
        };
        continue;
      }
      if (!isChecked(patch)) continue;
      const proxies = patch.match.context === 'GATEWAY' ? gatewaysOf(config, sources) : sidecarsOf(config, sources);
      if (proxies.length === 0 || proxies.length > maxProxies) continue;
      for (const proxy of proxies) generate(proxy, sources, generatedNames);
      const { isApplied, problem } = patchStatus(patch);
      if (isApplied && problem === undefined) continue;
      const field = `spec.configPatches[${index}]`;
      const message =
        problem === undefined
          ? unappliedText(`the ${patch.match.context === 'GATEWAY' ? 'gateways' : 'sidecars'} of these files`)
          : `cannot be applied: ${problem}`;
      yield { code: 'PATCH_NOT_APPLIED', config, field, message };
    }
  }
}

export function unappliedText(proxies: string): string {
  return `matches nothing at ${proxies}, so it has no effect: compare match with a config_dump of the proxy, or with pilot-discovery explain`;
}

/** @param nodeTypes types of the selected proxies; `undefined` if one is unknown */
export function typeWithoutContext(
  { match: { context } }: EnvoyPatch,
  nodeTypes: ReadonlySet<NodeType> | undefined,
): NodeType | undefined {
  if (nodeTypes?.size !== 1 || context === 'ANY' || context === 'WAYPOINT') return undefined;
  const [type] = nodeTypes;
  return (context === 'GATEWAY') === (type === 'router') ? undefined : type;
}

export function otherTypeText(
  { match: { context } }: EnvoyPatch,
  index: number,
  type: NodeType,
  subject: string,
): Pick<ConfigWarning, 'field' | 'message'> {
  const [proxyKind, contexts] =
    type === 'router' ? ['gateways', 'GATEWAY'] : ['sidecars', 'SIDECAR_INBOUND or SIDECAR_OUTBOUND'];
  return {
    field: `spec.configPatches[${index}]`,
    message: `matches nothing: its context is ${context}, and the ${subject} that workloadSelector selects are ${proxyKind}: use the context ${contexts}, or correct the selector`,
  };
}

/** `undefined` if the type of a selected Pod is uncertain. */
function selectedTypes(
  { namespace, spec: { workloadSelector = {} } }: Config<EnvoyFilter>,
  { configs, context, knownObjects }: CheckSourcesOfFiles,
): ReadonlySet<NodeType> | undefined {
  const isForMesh = namespace === context.mesh.rootNamespace;
  if (Object.keys(workloadSelector).length === 0 || !knownObjects.isComplete('Pod', isForMesh ? '' : namespace))
    return undefined;
  const pods = configs.Pod.filter(
    (pod) => (isForMesh || pod.namespace === namespace) && matchesSelector(workloadSelector, pod.labels),
  );
  const types = pods.map((pod) => {
    const hasSidecar = isInjected(pod, configs);
    if (isGatewayByItself(pod)) return 'router';
    // The Gateway may select a workload with a sidecar unintentionally.
    if (isGatewayPod(pod, configs.Gateway)) return hasSidecar ? undefined : 'router';
    return hasSidecar ? 'sidecar' : undefined;
  });
  return types.includes(undefined) ? undefined : new Set(types as NodeType[]);
}

export function hasOtherDelivery({ applyTo }: EnvoyPatch): boolean {
  return otherTargets.includes(applyTo);
}

function isChecked(patch: EnvoyPatch): boolean {
  const { match } = patch;
  const { proxyVersion = '', metadata = {} } = match.proxy ?? {};
  const matchesAllProxies = proxyVersion === '' && Object.keys(metadata).length === 0;
  return matchesAllProxies && checkedContexts.includes(match.context) && !hasOtherDelivery(patch);
}

interface GivenProxy {
  readonly type: 'router' | 'sidecar';
  readonly namespace: string;
  readonly labels: Labels;
}

function gatewaysOf({ namespace, spec }: Config<EnvoyFilter>, { configs, context }: CheckSourcesOfFiles): GivenProxy[] {
  const isForMesh = namespace === context.mesh.rootNamespace;
  const proxiesByKey = new Map<string, GivenProxy>();
  for (const gateway of configs.Gateway) {
    const labels = { ...gateway.spec.selector, ...spec.workloadSelector };
    const proxyNamespace = isForMesh ? gateway.namespace : namespace;
    proxiesByKey.set(`${proxyNamespace} ${JSON.stringify(labels)}`, {
      type: 'router',
      namespace: proxyNamespace,
      labels,
    });
  }
  return [...proxiesByKey.values()];
}

function sidecarsOf({ namespace, spec }: Config<EnvoyFilter>, { context }: CheckSourcesOfFiles): GivenProxy[] {
  if (context.services.length === 0) return [];
  const isForMesh = namespace === context.mesh.rootNamespace;
  const namespaces = isForMesh ? new Set(context.services.map((service) => service.namespace)) : [namespace];
  return [...namespaces].map((proxyNamespace) => ({
    type: 'sidecar',
    namespace: proxyNamespace,
    labels: spec.workloadSelector ?? {},
  }));
}

/** Patches record whether they were applied. */
function generate(proxy: GivenProxy, { context }: CheckSourcesOfFiles, generatedNames: Set<string>): void {
  const key = JSON.stringify(proxy);
  if (generatedNames.has(key)) return;
  generatedNames.add(key);
  const shape = shapeOfProxy(proxy, context);
  if (shape === undefined) return;
  buildClusters(shape, context);
  buildListeners(shape, context);
  const ports = context.services.flatMap((service) => service.ports.filter(({ protocol }) => isHttp(protocol)));
  const sidecarPorts = [...new Set(ports.map(({ number }) => String(number)))];
  buildRoutes(
    shape,
    context,
    proxy.type === 'router' ? [...mergeGateways(shape, context).routes.keys()] : sidecarPorts,
  );
}

function shapeOfProxy(
  { type, namespace, labels }: GivenProxy,
  context: CheckSources['context'],
): ProxyShape | undefined {
  const node = parseNode({
    id: `${type}~127.0.0.1~described.${namespace}~${namespace}.svc.${context.domain}`,
    cluster: '',
    metadata: { NAMESPACE: namespace, LABELS: labels },
  });
  return E.isRight(node) ? shapeOf(node.right, context) : undefined;
}
