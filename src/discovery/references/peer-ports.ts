/** Ports of PeerAuthentications are ports of workloads, not of Services (spec/discovery.md §8.10). */
import type { Config } from '../../model/config/config.ts';
import type { KubernetesService } from '../../model/kinds/kubernetes/service.ts';
import { type ConfigCheck, isWritten } from './config-warning.ts';

type Labels = Readonly<Record<string, string>>;

/** Services that a policy is compared with. */
const maxServices = 100;

export const checkPeerPorts: ConfigCheck = function* ({ configs }) {
  const policies = configs.PeerAuthentication.filter(({ spec }) => spec.portLevelMtls !== undefined);
  if (policies.length === 0) return;
  const byLabel = new Map<string, Config<KubernetesService>[]>();
  for (const service of configs.Service) {
    yield undefined;
    for (const text of labelTexts(service.namespace, service.spec.spec.selector)) {
      const known = byLabel.get(text);
      if (known === undefined) byLabel.set(text, [service]);
      else if (known.length < maxServices) known.push(service);
    }
  }
  for (const config of policies) {
    yield undefined;
    const { selector = {}, portLevelMtls = {} } = config.spec;
    if (!isWritten(config)) continue;
    const candidates = labelTexts(config.namespace, selector).flatMap((text) => byLabel.get(text) ?? []);
    const services = [...new Set(candidates)].filter(({ spec }) => areCompatible(selector, spec.spec.selector ?? {}));
    const targets = new Set(
      services.flatMap(({ spec }) => spec.spec.ports.map(({ port, targetPort = port }) => targetPort)),
    );
    // A port that is a name may have any number.
    if (services.length === 0 || [...targets].some((target) => typeof target === 'string')) continue;
    for (const written of Object.keys(portLevelMtls)) {
      const number = Number(written);
      if (targets.has(number)) continue;
      const service = services.find(({ spec }) => spec.spec.ports.some(({ port }) => port === number));
      const target = service?.spec.spec.ports.find(({ port }) => port === number)?.targetPort;
      if (service === undefined || target === undefined) continue;
      yield {
        ...{ code: 'SERVICE_PORT_IN_POLICY', config, field: `spec.portLevelMtls.${written}` },
        message: `${written} is a port of Service ${service.namespace}/${service.name}, whose workloads listen on ${target}, so this mode has no effect: write ${target}`,
        other: { config: service, field: 'spec.ports' },
      };
    }
  }
};

function labelTexts(namespace: string, labels: Labels = {}): readonly string[] {
  return Object.entries(labels).map(([key, value]) => `${namespace} ${key}=${value}`);
}

/** Whether a workload may have the labels of both. */
function areCompatible(a: Labels, b: Labels): boolean {
  return Object.entries(a).every(([key, value]) => b[key] === undefined || b[key] === value);
}
