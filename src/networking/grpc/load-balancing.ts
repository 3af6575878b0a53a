/** gRPC uses the first supported entry of `load_balancing_policy`, and rejects the cluster if it supports none. */
import { Cluster_LbPolicy, type ClusterSchema } from '../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import { LeastRequestSchema } from '../../gen/envoy/extensions/load_balancing_policies/least_request/v3/least_request_pb.ts';
import { RoundRobinSchema } from '../../gen/envoy/extensions/load_balancing_policies/round_robin/v3/round_robin_pb.ts';
import { WrrLocalitySchema } from '../../gen/envoy/extensions/load_balancing_policies/wrr_locality/v3/wrr_locality_pb.ts';
import type {
  ConsistentHashLoadBalancer,
  LoadBalancerSettings,
} from '../../model/kinds/destinations/traffic-policy.ts';
import { type TypedExtension, typedExtension } from '../messages/any.ts';
import type { Init } from '../messages/init.ts';

type LbFields = Pick<Init<typeof ClusterSchema>, 'lbPolicy' | 'lbConfig' | 'loadBalancingPolicy'>;

const defaultMinimumRingSize = 1024;
/** gRPC rejects larger rings. */
const maxRingSize = 8_388_608;

const roundRobin = typedExtension('envoy.load_balancing_policies.round_robin', RoundRobinSchema);
const leastRequest = typedExtension('envoy.load_balancing_policies.least_request', LeastRequestSchema);

/** Within each locality, gRPC uses the first supported one of these policies. */
function wrapInLocalities(policies: readonly TypedExtension[]): NonNullable<LbFields['loadBalancingPolicy']> {
  const wrrLocality = typedExtension('envoy.load_balancing_policies.wrr_locality', WrrLocalitySchema, {
    endpointPickingPolicy: policyList(policies),
  });
  return policyList([wrrLocality]);
}

function policyList(policies: readonly TypedExtension[]) {
  return {
    policies: policies.map(({ name, configType }) => ({
      typedExtensionConfig: { name, typedConfig: configType.value },
    })),
  };
}

export function grpcLoadBalancing(settings: LoadBalancerSettings | undefined): {
  fields: LbFields;
  unsupported: readonly string[];
} {
  const hash = settings?.consistentHash;
  const warmup = settings?.warmup === undefined ? [] : ['loadBalancer.warmup is ignored'];
  if (hash !== undefined && hash.maglev === undefined)
    return { fields: ringHash(hash), unsupported: [...warmup, ...unsupportedKeyOf(hash)] };
  switch (hash === undefined ? settings?.simple : 'MAGLEV') {
    case 'LEAST_REQUEST':
      return {
        fields: {
          lbPolicy: Cluster_LbPolicy.LEAST_REQUEST,
          loadBalancingPolicy: wrapInLocalities([leastRequest, roundRobin]),
        },
        unsupported: [...warmup, 'clients without LEAST_REQUEST (Node) use ROUND_ROBIN'],
      };
    case 'RANDOM':
    case 'PASSTHROUGH':
    case 'MAGLEV': {
      const policyText = hash === undefined ? settings?.simple : 'maglev';
      return {
        fields: roundRobinFields,
        unsupported: [...warmup, `load balancing by ${policyText} is replaced by ROUND_ROBIN`],
      };
    }
    default:
      return { fields: roundRobinFields, unsupported: warmup };
  }
}

const roundRobinFields: LbFields = {
  lbPolicy: Cluster_LbPolicy.ROUND_ROBIN,
  loadBalancingPolicy: wrapInLocalities([roundRobin]),
};

/** Uses the deprecated field instead of `load_balancing_policy`, because Node clients support only that field. */
function ringHash({ ringHash, minimumRingSize }: ConsistentHashLoadBalancer): LbFields {
  const size = Math.min(ringHash?.minimumRingSize || minimumRingSize || defaultMinimumRingSize, maxRingSize);
  return {
    lbPolicy: Cluster_LbPolicy.RING_HASH,
    lbConfig: { case: 'ringHashLbConfig', value: { minimumRingSize: BigInt(size) } },
  };
}

function unsupportedKeyOf({
  httpHeaderName,
  httpCookie,
  useSourceIp,
  httpQueryParameterName,
}: ConsistentHashLoadBalancer): readonly string[] {
  if (httpHeaderName) return [];
  const key = httpCookie
    ? 'a cookie'
    : useSourceIp
      ? 'the source IP'
      : httpQueryParameterName
        ? 'a query parameter'
        : '';
  return key === '' ? [] : [`requests are not hashed by ${key}: gRPC hashes by headers only`];
}
