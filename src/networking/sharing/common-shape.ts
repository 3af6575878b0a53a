/** A common shape stands for all namespaces, or for all workloads of a namespace. Their common resources are built once, for this shape. */
import { memoizeByObject } from '../../model/collections/memoize-by-object.ts';
import { WeakValues } from '../../model/collections/weak-values.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { publicViewNamespace } from '../../model/services/visibility.ts';
import { labelsText } from '../inputs/input-text.ts';

type CommonScope = 'mesh' | 'namespace';

const scopes = new WeakMap<ProxyShape, CommonScope>();
const shapes = new WeakValues<ProxyShape>();
/** Keeps common shapes while a shape uses them. Labels matter only if they order endpoints. */
const commonShapesByLabels = memoizeByObject((shape: ProxyShape) => buildCommonShapes(shape, shape.labels));
const commonShapesForAnyLabels = memoizeByObject((shape: ProxyShape) => buildCommonShapes(shape, {}));

/**
 * Returns the shapes from whose lists the list of a shape can be derived: one for a namespace without visibility exceptions, and one for the shape's
 * own namespace. Both have no services. Their other properties that affect clusters and endpoints are those of the shape.
 */
export function commonShapes(shape: ProxyShape, push: PushContext): readonly ProxyShape[] {
  const scope = scopes.get(shape);
  if (scope === 'mesh') return [];
  const { mesh, namespace } = (push.ordersEndpointsByLabels ? commonShapesByLabels : commonShapesForAnyLabels)(shape);
  return scope === 'namespace' ? [mesh] : [mesh, namespace];
}

function buildCommonShapes(shape: ProxyShape, labels: ProxyShape['labels']): Readonly<Record<CommonScope, ProxyShape>> {
  const { type, ipFamily, nodeName, locality, network, clusterId, interceptionMode, matchedMetadata, runsWasm } = shape;
  const { ISTIO_EXTENSIONS, WORKLOAD_CERTIFICATES, REVOCATION_LISTS } = shape.metadata;
  const metadata = {
    ...(ISTIO_EXTENSIONS !== undefined && { ISTIO_EXTENSIONS }),
    ...(WORKLOAD_CERTIFICATES !== undefined && { WORKLOAD_CERTIFICATES }),
    ...(REVOCATION_LISTS !== undefined && { REVOCATION_LISTS }),
  };
  const relevantProperties = {
    type,
    ipFamily,
    nodeName,
    locality,
    network,
    clusterId,
    interceptionMode,
    matchedMetadata,
    runsWasm,
    metadata,
  };
  const text = `${JSON.stringify(relevantProperties)} ${labelsText(labels)}`;
  const unownedProperties = { ...relevantProperties, labels, ownAddresses: [], dnsDomain: '', serviceTargets: [] };
  const commonShape = (scope: CommonScope, configNamespace: string): ProxyShape => {
    const key = `${configNamespace} ${text}`;
    const cachedShape = shapes.get(key);
    if (cachedShape !== undefined) return cachedShape;
    const sharedFields = { ...unownedProperties, configNamespace };
    scopes.set(sharedFields, scope);
    shapes.set(key, sharedFields);
    return sharedFields;
  };
  return {
    mesh: commonShape('mesh', publicViewNamespace),
    namespace: commonShape('namespace', shape.configNamespace),
  };
}
