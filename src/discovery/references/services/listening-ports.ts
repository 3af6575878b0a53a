/** Ports on which the workloads of a Service listen. */
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
  readonly #known: KnownObjects;
  readonly #cached = new Map<Config<KubernetesService>, ServiceListening>();
  #seen = 0;

  constructor(configs: CheckSources['configs'], known: KnownObjects) {
    this.#pods = new PodsOfServices(configs);
    this.#known = known;
  }

  of(service: Config<KubernetesService>): ServiceListening {
    const cached = this.#cached.get(service) ?? this.#read(service);
    this.#cached.set(service, cached);
    return cached;
  }

  #read(service: Config<KubernetesService>): ServiceListening {
    const isKnown = this.#seen <= maxPods && this.#known.isComplete('Pod', service.namespace);
    const selected = isKnown ? (this.#pods.selectedBy(service) as readonly Config<KubernetesPod>[]) : [];
    this.#seen += selected.length;
    const declared = selected.flatMap(containerPortsOf);
    const targets = new Map<number, readonly number[]>();
    for (const { port, targetPort = port, protocol } of service.spec.spec.ports) {
      const named = declared.filter((one) => one.name === targetPort && one.protocol === protocol);
      const numbers = typeof targetPort === 'number' ? [targetPort] : named.map(({ containerPort }) => containerPort);
      targets.set(port, [...new Set(numbers)]);
    }
    const isResolved = [...targets.values()].every((numbers) => numbers.length > 0);
    return {
      targets: isResolved ? targets : undefined,
      containers: new Set(declared.map(({ containerPort }) => containerPort)),
    };
  }
}
