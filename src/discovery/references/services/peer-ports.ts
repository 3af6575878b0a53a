/** Reports Service ports in policies and in ingress listeners of Sidecars, where workload ports are required. */
import type { Config } from '../../../model/config/config.ts';
import type { AuthorizationPolicy } from '../../../model/kinds/policies/authorization-policy.ts';
import type { PeerAuthentication } from '../../../model/kinds/policies/peer-authentication.ts';
import type { Sidecar } from '../../../model/kinds/workloads/sidecar.ts';
import { type ConfigCheck, isWrittenConfig } from '../config-warning.ts';
import { ListeningPorts } from './listening-ports.ts';
import { maxSelectingServices, SelectingServices } from './selecting-services.ts';

type Labels = Readonly<Record<string, string>>;

export const checkPeerPorts: ConfigCheck = function* ({ configs, context, knownObjects }) {
  const objects = [
    ...configs.PeerAuthentication.map(portsOfPolicy),
    ...configs.Sidecar.map(portsOfSidecar),
    ...configs.AuthorizationPolicy.map((config) => portsOfRules(config, context.mesh.rootNamespace)),
  ];
  const naming = objects.filter(({ ports, config }) => ports.length > 0 && isWrittenConfig(config));
  if (naming.length === 0) return;
  const services = yield* SelectingServices.build(configs.Service);
  const listeningPorts = new ListeningPorts(configs, knownObjects);
  for (const { config, selector, ports } of naming) {
    yield undefined;
    const candidates = services.findMatching(config.namespace, selector);
    // Beyond the limit, there may be other targets.
    if (candidates.length >= maxSelectingServices) continue;
    const listeningServices = candidates.map((service) => ({ service, ...listeningPorts.portsOf(service) }));
    for (const { number, field, effect } of ports) {
      const { service, targets } =
        listeningServices.find((listeningService) => listeningService.targets?.has(number)) ?? {};
      const numbers = targets?.get(number);
      // A named port can have any number.
      if (service === undefined || numbers === undefined) continue;
      const mayListen = listeningServices.some(
        (listeningService) =>
          listeningService.targets === undefined ||
          listeningService.containers!.has(number) ||
          [...listeningService.targets.values()].flat().includes(number),
      );
      if (mayListen) continue;
      const target = numbers.join(' and ');
      yield {
        ...{ code: 'SERVICE_PORT_IN_POLICY', config, field },
        message: `${number} is a port of Service ${service.namespace}/${service.name}, whose workloads listen on ${target}, so ${effect}: use ${target}`,
        other: { config: service, field: 'spec.ports' },
      };
    }
  }
};

interface NamedPorts {
  readonly config: Config;
  readonly selector: Labels;
  readonly ports: readonly { readonly number: number; readonly field: string; readonly effect: string }[];
}

function portsOfPolicy(config: Config<PeerAuthentication>): NamedPorts {
  const { selector = {}, portLevelMtls = {} } = config.spec;
  const effect = 'this mode has no effect';
  // Without a selector, the modes of ports are ignored.
  const numbers = Object.keys(selector).length === 0 ? [] : Object.keys(portLevelMtls);
  return {
    ...{ config, selector },
    ports: numbers.map((portNumber) => ({
      ...{ number: Number(portNumber), field: `spec.portLevelMtls.${portNumber}`, effect },
    })),
  };
}

function portsOfSidecar(config: Config<Sidecar>): NamedPorts {
  const { workloadSelector, ingress = [] } = config.spec;
  return {
    ...{ config, selector: workloadSelector?.labels ?? {} },
    ports: ingress.map(({ port: { number } }, index) => ({
      ...{ number, field: `spec.ingress[${index}].port.number` },
      effect: 'requests for the Service do not reach this listener',
    })),
  };
}

/** `ports`, `notPorts`, and the condition `destination.port` of each rule. */
function portsOfRules(config: Config<AuthorizationPolicy>, rootNamespace: string): NamedPorts {
  const { selector = {}, targetRefs, rules } = config.spec;
  const isMeshWide = config.namespace === rootNamespace && Object.keys(selector).length === 0;
  if (targetRefs !== undefined || isMeshWide) return { config, selector, ports: [] };
  const listedValues = (values: readonly string[] = [], path: string, effect: string) =>
    values.map((value, index) => ({ number: Number(value), field: `${path}[${index}]`, effect }));
  const matchEffect = 'it matches no request';
  const exclusionEffectText = 'it excludes no request';
  const ports = rules.flatMap(({ to = [], when = [] }, rule) => [
    ...to.flatMap((operation, index) => {
      const path = `spec.rules[${rule}].to[${index}].operation`;
      return [
        ...listedValues(operation.ports, `${path}.ports`, matchEffect),
        ...listedValues(operation.notPorts, `${path}.notPorts`, exclusionEffectText),
      ];
    }),
    ...when.flatMap(({ key, values, notValues }, index) => {
      const path = `spec.rules[${rule}].when[${index}]`;
      if (key !== 'destination.port') return [];
      return [
        ...listedValues(values, `${path}.values`, matchEffect),
        ...listedValues(notValues, `${path}.notValues`, exclusionEffectText),
      ];
    }),
  ]);
  return { config, selector, ports };
}
