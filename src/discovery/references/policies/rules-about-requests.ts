/** Reports AuthorizationPolicies with request fields for workloads without an HTTP port. */
import type { Config } from '../../../model/config/config.ts';
import { isTcp, protocolOf } from '../../../model/fields/protocol.ts';
import type { KubernetesService } from '../../../model/kinds/kubernetes/service.ts';
import type { AuthorizationPolicy, AuthorizationRule } from '../../../model/kinds/policies/authorization-policy.ts';
import { needsRequests } from '../../../networking/authorization/rbac-rules.ts';
import { type ConfigCheck, isWrittenConfig } from '../config-warning.ts';
import { ListeningPorts } from '../services/listening-ports.ts';
import { maxSelectingServices, SelectingServices } from '../services/selecting-services.ts';

export const checkRulesAboutRequests: ConfigCheck = function* ({ configs, knownObjects }) {
  const policies = configs.AuthorizationPolicy.filter(isAboutRequests);
  if (policies.length === 0) return;
  const services = yield* SelectingServices.build(configs.Service);
  const listeningPorts = new ListeningPorts(configs, knownObjects);
  for (const config of policies) {
    yield undefined;
    const { selector = {}, rules, action } = config.spec;
    const selectingServices = services.findMatching(config.namespace, selector);
    if (selectingServices.length >= maxSelectingServices || !knownObjects.isComplete('Service', config.namespace))
      continue;
    const ports = selectingServices.flatMap((service) => workloadPorts(service, listeningPorts));
    for (const [index, rule] of rules.entries()) {
      if (!needsRequests(rule)) continue;
      const rulePorts = portsOf(rule);
      const relevantPorts = ports.filter(
        ({ number }) => rulePorts === undefined || number === undefined || rulePorts.has(number),
      );
      const [first] = relevantPorts;
      if (first === undefined || relevantPorts.some((relevantPort) => !relevantPort.isTcp)) continue;
      yield {
        ...{ code: 'RULE_NEEDS_HTTP', config, field: `spec.rules[${index}]` },
        message: `port ${first.port} of Service ${first.service.namespace}/${first.service.name} is ${first.protocol}, which has no requests, so ${effects[action]}: remove what is about requests (paths, methods, hosts, tokens, headers), or correct the protocol of the port`,
        other: { config: first.service, field: 'spec.ports' },
      };
    }
  }
};

const effects: { readonly [Action in AuthorizationPolicy['action']]: string } = {
  ALLOW: 'this rule allows no connection',
  DENY: 'these fields are ignored and the rule rejects every connection that its other fields match',
  AUDIT: 'these fields are ignored and the rule audits every connection that its other fields match',
  CUSTOM: 'these fields are ignored and every connection that the other fields match is sent to the provider',
};

/** Without a selector, a policy may apply to workloads that receive requests without a Service. */
function isAboutRequests(config: Config<AuthorizationPolicy>): boolean {
  const { selector = {}, rules } = config.spec;
  return isWrittenConfig(config) && Object.keys(selector).length > 0 && rules.some(needsRequests);
}

interface WorkloadPort {
  readonly service: Config<KubernetesService>;
  readonly port: number;
  /** `undefined` for a port name that no known Pod has. */
  readonly number: number | undefined;
  readonly protocol: string;
  readonly isTcp: boolean;
}

function workloadPorts(service: Config<KubernetesService>, listeningPorts: ListeningPorts): readonly WorkloadPort[] {
  const { targets } = listeningPorts.portsOf(service);
  return service.spec.spec.ports
    .map(({ name, port, appProtocol, protocol: transport }) => {
      const protocol = protocolOf({ name, number: port, transport, ...(appProtocol !== undefined && { appProtocol }) });
      return { service, port, protocol, number: targets?.get(port)?.[0], isTcp: isTcp(protocol) };
    })
    .filter(({ protocol }) => protocol !== 'UDP');
}

/** `undefined` for all ports. */
function portsOf({ to = [] }: AuthorizationRule): ReadonlySet<number> | undefined {
  if (to.length === 0 || to.some(({ ports }) => ports === undefined)) return undefined;
  return new Set(to.flatMap(({ ports = [] }) => ports.map(Number)));
}
