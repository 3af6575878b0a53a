import type { Config } from '../../../model/config/config.ts';
import type { KubernetesPod } from '../../../model/kinds/kubernetes/pod.ts';
import type { KubernetesService } from '../../../model/kinds/kubernetes/service.ts';
import type { CheckSources } from '../config-warning.ts';
import type { KnownObjects } from '../known-objects.ts';
import { PodsOfServices } from './pods-of-services.ts';
import { containerPortsOf } from './target-ports.ts';

/** Maximum for all Services together. */
const maxPods = 100_000;

export interface ServiceListening {
  /** Workload ports by Service port; `undefined` if a port name is unknown, because no known Pod has it. */
  readonly targets: ReadonlyMap<number, readonly number[]> | undefined;
  readonly containers: ReadonlySet<number>;
}

export class ListeningPorts {
  readonly #pods: PodsOfServices;
  readonly #checkedObjects: KnownObjects;
  readonly #cachedListening = new Map<Config<KubernetesService>, ServiceListening>();
  #podCount = 0;

  constructor(configs: CheckSources['configs'], checkedObjects: KnownObjects) {
    this.#pods = new PodsOfServices(configs);
    this.#checkedObjects = checkedObjects;
  }

  portsOf(service: Config<KubernetesService>): ServiceListening {
    const cachedPorts = this.#cachedListening.get(service) ?? this.#readPorts(service);
    this.#cachedListening.set(service, cachedPorts);
    return cachedPorts;
  }

  #readPorts(service: Config<KubernetesService>): ServiceListening {
    const arePodsKnown = this.#podCount <= maxPods && this.#checkedObjects.isComplete('Pod', service.namespace);
    const selectedPods = arePodsKnown ? (this.#pods.selectedBy(service) as readonly Config<KubernetesPod>[]) : [];
    this.#podCount += selectedPods.length;
    const declaredPorts = selectedPods.flatMap(containerPortsOf);
    const targets = new Map<number, readonly number[]>();
    for (const { port, targetPort = port, protocol } of service.spec.spec.ports) {
      const namedPorts = declaredPorts.filter(
        (declaredPort) => declaredPort.name === targetPort && declaredPort.protocol === protocol,
      );
      const numbers =
        typeof targetPort === 'number' ? [targetPort] : namedPorts.map(({ containerPort }) => containerPort);
      targets.set(port, [...new Set(numbers)]);
    }
    const isResolved = [...targets.values()].every((numbers) => numbers.length > 0);
    return {
      targets: isResolved ? targets : undefined,
      containers: new Set(declaredPorts.map(({ containerPort }) => containerPort)),
    };
  }
}
