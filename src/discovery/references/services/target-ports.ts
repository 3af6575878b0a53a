/** Reports a named target port of a Service if no container of the selected Pods has the port. */
import type { Config } from '../../../model/config/config.ts';
import type { KubernetesContainerPort, KubernetesPod } from '../../../model/kinds/kubernetes/pod.ts';
import type { KubernetesServicePort } from '../../../model/kinds/kubernetes/service.ts';
import type { ConfigCheck, ConfigWarning } from '../config-warning.ts';
import { PodsOfServices } from './pods-of-services.ts';

const maxNames = 5;

/** Maximum for all Services of a namespace. A Pod is counted for each Service that selects it. */
const maxPods = 100_000;

export const checkTargetPorts: ConfigCheck = function* ({ context, configs, knownObjects }) {
  const pods = new PodsOfServices(configs);
  const countByService = new Map<string, number>();
  for (const service of context.services) {
    yield undefined;
    const config = pods.objectOf(service);
    const namedPorts = config?.spec.spec.ports.filter(({ targetPort }) => typeof targetPort === 'string') ?? [];
    if (config === undefined || namedPorts.length === 0 || !knownObjects.isComplete('Pod', config.namespace)) continue;
    const count = countByService.get(config.namespace) ?? 0;
    if (count > maxPods) continue;
    const selectedPods = pods.podsOf(service) as readonly Config<KubernetesPod>[];
    countByService.set(config.namespace, count + selectedPods.length);
    // A template without containers is incomplete.
    if (selectedPods.length === 0 || selectedPods.some(({ spec }) => spec.spec.containers.length === 0)) continue;
    const endpoints = context.endpointsOf(service.hostname, service.namespace);
    const withEndpoints = new Set(endpoints.map(({ servicePortName }) => servicePortName));
    const ports = selectedPods.flatMap(containerPortsOf);
    const targets = new Set(ports.map(({ name, protocol }) => `${protocol} ${name}`));
    for (const port of namedPorts) {
      // A WorkloadEntry may have the port.
      if (withEndpoints.has(port.name) || targets.has(`${port.protocol} ${port.targetPort}`)) continue;
      const warning = warningOf(config, port, ports);
      const [pod] = selectedPods;
      // A Pod template in files has no location.
      const hasLocation = !knownObjects.areFromFiles || pod!.source !== undefined;
      yield hasLocation ? { ...warning, other: { config: pod!, field: 'spec.containers' } } : warning;
    }
  }
};

/** Ports of containers, and of init containers that keep running. */
export function containerPortsOf({ spec: { spec } }: Config<KubernetesPod>): readonly KubernetesContainerPort[] {
  const sidecars = spec.initContainers.filter(({ restartPolicy }) => restartPolicy === 'Always');
  return [...spec.containers, ...sidecars].flatMap(({ ports }) => ports);
}

function warningOf(
  config: NonNullable<ReturnType<PodsOfServices['objectOf']>>,
  { name, port, targetPort, protocol }: KubernetesServicePort,
  ports: readonly KubernetesContainerPort[],
): ConfigWarning {
  const isOtherPortName = ports.some((servicePort) => servicePort.name === targetPort);
  const names = [
    ...new Set(ports.filter((servicePort) => servicePort.name !== '').map((servicePort) => servicePort.name)),
  ];
  const namesText = names.length === 0 ? 'none has a name' : names.slice(0, maxNames).join(', ');
  const reason = isOtherPortName
    ? `the port ${targetPort} of the selected pods is not ${protocol}`
    : `no container of the selected pods has a port named ${targetPort} (their ports: ${namesText})`;
  const index = config.spec.spec.ports.findIndex(
    (servicePort) => servicePort.port === port && servicePort.name === name,
  );
  return {
    ...{ code: 'PORT_NOT_FOUND', config, field: `spec.ports[${index}].targetPort` },
    message: `${reason}, so port ${port} has no endpoints and requests for it fail (503): correct the name, or add it to the container`,
  };
}
