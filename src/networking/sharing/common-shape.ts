/**
 * Shapes that stand for many: what two namespaces, or two workloads of one, have in common is made for such a shape, once.
 * No proxy has one.
 */
import { onceFor } from '../../model/collections/once-for.ts';
import { WeakValues } from '../../model/collections/weak-values.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { publicViewNamespace } from '../../model/services/visibility.ts';
import { labelsText } from '../inputs/input-text.ts';

/** Whom a shape stands for. */
type Standing = 'everybody' | 'namespace';

const standings = new WeakMap<ProxyShape, Standing>();
/** Common shapes: equal ones are one object. */
const shapes = new WeakValues<ProxyShape>();
/** Held by the shapes that they stand for. Labels count where endpoints are ordered by them, and nowhere else. */
const byLabels = onceFor((shape: ProxyShape) => made(shape, shape.labels));
const forAnyLabels = onceFor((shape: ProxyShape) => made(shape, {}));

/**
 * The shapes whose lists a shape's may be made from: of a proxy in a namespace that sees what everybody sees, and of one of its
 * own namespace; both are nobody's workload. What else clusters and endpoints depend on is as in the shape.
 */
export function commonShapes(shape: ProxyShape, push: PushContext): readonly ProxyShape[] {
  const standing = standings.get(shape);
  if (standing === 'everybody') return [];
  const { everybody, namespace } = (push.ordersEndpointsByLabels ? byLabels : forAnyLabels)(shape);
  return standing === 'namespace' ? [everybody] : [everybody, namespace];
}

function made(shape: ProxyShape, labels: ProxyShape['labels']): Readonly<Record<Standing, ProxyShape>> {
  const { type, ipFamily, nodeName, locality, network, clusterId, interceptionMode, matchedMetadata, runsWasm } = shape;
  const { ISTIO_EXTENSIONS, WORKLOAD_CERTIFICATES, REVOCATION_LISTS } = shape.metadata;
  const metadata = {
    ...(ISTIO_EXTENSIONS !== undefined && { ISTIO_EXTENSIONS }),
    ...(WORKLOAD_CERTIFICATES !== undefined && { WORKLOAD_CERTIFICATES }),
    ...(REVOCATION_LISTS !== undefined && { REVOCATION_LISTS }),
  };
  const own = {
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
  const text = `${JSON.stringify(own)} ${labelsText(labels)}`;
  const nobodys = { ...own, labels, ownAddresses: [], dnsDomain: '', serviceTargets: [] };
  const standingFor = (standing: Standing, configNamespace: string): ProxyShape => {
    const key = `${configNamespace} ${text}`;
    const known = shapes.get(key);
    if (known !== undefined) return known;
    const common = { ...nobodys, configNamespace };
    standings.set(common, standing);
    shapes.set(key, common);
    return common;
  };
  return {
    everybody: standingFor('everybody', publicViewNamespace),
    namespace: standingFor('namespace', shape.configNamespace),
  };
}
