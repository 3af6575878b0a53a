/** EDS: the endpoints of each asked cluster (spec/discovery.md §7.3, §8.3). */
import { ClusterLoadAssignmentSchema } from '../../gen/envoy/config/endpoint/v3/endpoint_pb.ts';
import type { ProxyView } from '../../model/proxy.ts';
import type { PushContext } from '../../model/push-context.ts';
import { endpointsKey, serviceKey } from '../../model/service.ts';
import { parseOutboundClusterName } from '../names.ts';
import { type ProxyShape, proxyShape } from '../proxy-shape.ts';
import { type Reach, reachOf } from '../reach.ts';
import type { Resource } from '../resource.ts';
import { effectivePolicy, localitySetting, subsetOf } from '../traffic-policy.ts';
import { loadAssignment } from './assignment.ts';
import { selectEndpoints } from './selection.ts';

/** One assignment for each name; a name that means no service the proxy may reach gets one without endpoints. */
export function buildEndpoints(view: ProxyView, push: PushContext, clusterNames: readonly string[]): Resource[] {
  const reach = reachOf(view, push);
  const shape = proxyShape(view);
  return clusterNames.map((name) => endpointsOfCluster(name, push, reach, shape));
}

/** The endpoints of one cluster: what it depends on is in its arguments alone, so that a cache may keep it. */
export function endpointsOfCluster(clusterName: string, push: PushContext, reach: Reach, shape: ProxyShape): Resource {
  const parts = parseOutboundClusterName(clusterName);
  const service = parts && reach.serviceByHostname(parts.host);
  const port = service?.ports.find((candidate) => candidate.number === parts?.port);
  const order = { proxyLocality: shape.locality, proxyLabels: shape.labels, outlierDetection: false };
  const resource = (message: ReturnType<typeof loadAssignment>, dependsOn: Resource['dependsOn']): Resource => ({
    name: clusterName,
    schema: ClusterLoadAssignmentSchema,
    message,
    dependsOn,
  });
  if (parts === undefined || service === undefined || port === undefined) {
    return resource(loadAssignment(clusterName, [], order), service ? [serviceKey(service)] : []);
  }
  const rule = reach.destinationRuleFor(service);
  const dependsOn = [serviceKey(service), endpointsKey(service), ...(rule?.origins ?? [])];
  const subset = subsetOf(rule?.config.spec, parts.subset);
  if (parts.subset !== '' && subset === undefined) return resource(loadAssignment(clusterName, [], order), dependsOn);
  const policy = effectivePolicy(rule?.config.spec, parts.subset, port.number);
  const endpoints = selectEndpoints(push.endpointsOf(service.hostname, service.namespace), {
    port,
    ...(subset?.labels && { labels: subset.labels }),
    onlyMutualTls: parts.sni,
  });
  const setting = localitySetting(policy, push.mesh.localityLbSetting);
  const outlierDetection = policy.outlierDetection !== undefined;
  return resource(loadAssignment(clusterName, endpoints, { ...order, setting, outlierDetection }), dependsOn);
}
