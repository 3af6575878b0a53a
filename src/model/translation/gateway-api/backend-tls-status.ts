/**
 * Status of BackendTLSPolicies, with one entry per Gateway of this control plane that routes to a Service of the policy (PolicyStatus of the API).
 */
import type { Config } from '../../config/config.ts';
import type { BackendTlsPolicy } from '../../kinds/gateway-api/backend-tls-policy.ts';
import { gatewayApiGroup } from '../../kinds/gateway-api/fields.ts';
import {
  type BackendTls,
  backendTlsOf,
  backendTlsTargetKey,
  policiesByTarget,
} from '../../push-context/backend-tls.ts';
import type { CredentialIndex } from '../../push-context/credential-index.ts';
import type { ListenerAttachment } from './attachments.ts';
import { condition, type GatewayApiCondition, type RouteStatus } from './object-conditions.ts';

const maxAncestors = 16;

type GatewaysByService = ReadonlyMap<string, ReadonlySet<Config>>;

/** Returns the status by `namespace/name`. Ancestors correspond to a route's parents. */
export function backendTlsStatuses(
  policies: readonly Config<BackendTlsPolicy>[],
  attachments: readonly ListenerAttachment[],
  configMaps: Pick<CredentialIndex, 'configMap'>,
): ReadonlyMap<string, RouteStatus> {
  if (policies.length === 0) return new Map();
  const gateways = gatewaysByService(attachments);
  const policyByTarget = policiesByTarget(policies);
  return new Map(
    policies.map((policy) => {
      const ancestors = new Set(
        servicesOf(policy).flatMap(({ name }) => [...(gateways.get(`${policy.namespace}/${name}`) ?? [])]),
      );
      const tls = backendTlsOf(policy, configMaps);
      const parents = [...ancestors].slice(0, maxAncestors).map(({ namespace, name }) => ({
        parentRef: { group: gatewayApiGroup, kind: 'Gateway', namespace, name },
        conditions: [acceptedOf(policy, tls, policyByTarget), resolvedRefs(tls)],
      }));
      const { generation } = policy;
      return [`${policy.namespace}/${policy.name}`, { ...(generation !== undefined && { generation }), parents }];
    }),
  );
}

/** Yields problems of policies without a known Gateway, for `push_status` and `validate`. */
export function* backendTlsReports(
  policies: readonly Config<BackendTlsPolicy>[],
  configMaps: Pick<CredentialIndex, 'configMap'>,
): Iterable<{ readonly policy: Config<BackendTlsPolicy>; readonly message: string } | undefined> {
  const policyByTarget = policiesByTarget(policies);
  for (const policy of policies) {
    const tls = backendTlsOf(policy, configMaps);
    const failedConditions = [acceptedOf(policy, tls, policyByTarget), resolvedRefs(tls)].filter(
      ({ status }) => status === 'False',
    );
    const messages = failedConditions.map(({ message }) => message);
    // Rejected policies are reported separately.
    if (messages.length === 0 || policy.standsFor !== undefined) yield undefined;
    else yield { policy, message: messages.join('; ') };
  }
}

function servicesOf({ spec }: Config<BackendTlsPolicy>): BackendTlsPolicy['targetRefs'] {
  return spec.targetRefs.filter(({ group, kind }) => group === '' && kind === 'Service');
}

function gatewaysByService(attachments: readonly ListenerAttachment[]): GatewaysByService {
  const conflictsByTarget = new Map<string, Set<Config>>();
  for (const { route, listener } of attachments) {
    for (const { backendRefs, filters } of route.spec.rules) {
      const mirrors = filters.flatMap(({ requestMirror }) => requestMirror?.backendRef ?? []);
      for (const { group, kind, name, namespace = route.namespace } of [...backendRefs, ...mirrors]) {
        if (group !== '' || kind !== 'Service') continue;
        const serviceGateways = conflictsByTarget.get(`${namespace}/${name}`) ?? new Set();
        conflictsByTarget.set(`${namespace}/${name}`, serviceGateways.add(listener.gateway));
      }
    }
  }
  return conflictsByTarget;
}

function acceptedOf(
  policy: Config<BackendTlsPolicy>,
  { roots, problems }: BackendTls,
  policyByTarget: ReadonlyMap<string, Config>,
): GatewayApiCondition {
  for (const { name, sectionName } of servicesOf(policy)) {
    const winningPolicy = policyByTarget.get(backendTlsTargetKey(policy.namespace, name, sectionName))!;
    if (winningPolicy === policy) continue;
    const target = `Service ${name}${sectionName === undefined ? '' : ` port ${sectionName}`}`;
    const message = `BackendTLSPolicy ${winningPolicy.namespace}/${winningPolicy.name} applies to ${target} instead: it is older, or first by name`;
    return condition('Accepted', false, 'Conflicted', message);
  }
  if (roots !== undefined) return condition('Accepted', true, 'Accepted', 'gateways use TLS as the policy specifies');
  const unsupportedProblem = problems.find(({ reason }) => reason === 'Invalid');
  const effect = 'requests get 503';
  if (unsupportedProblem !== undefined)
    return condition('Accepted', false, 'Invalid', `${unsupportedProblem.message}: ${effect}`);
  return condition('Accepted', false, 'NoValidCACertificate', `no reference has a valid CA certificate: ${effect}`);
}

function resolvedRefs({ problems }: BackendTls): GatewayApiCondition {
  const unresolvedProblems = problems.filter(({ reason }) => reason !== 'Invalid');
  if (unresolvedProblems.length === 0)
    return condition('ResolvedRefs', true, 'ResolvedRefs', 'all references are resolved');
  const message = unresolvedProblems.map((unresolvedReference) => unresolvedReference.message).join('; ');
  return condition('ResolvedRefs', false, unresolvedProblems[0]!.reason, message);
}
