/** Answers that every registry gives in the same way from what it holds. */
import type { LookedUp, ProxyLookup } from '../../model/proxy-lookup.ts';
import type { Service, ServiceTarget } from '../../model/service.ts';
import { byServiceAge } from '../../model/service-registry.ts';
import { serviceTargets } from '../../model/service-targets.ts';

export abstract class DiscoveryAnswers {
  abstract services(): readonly Service[];
  abstract servicesOf(hostname: string, namespace: string): readonly Service[];
  abstract get lookup(): ProxyLookup;

  getService(hostname: string): Service | undefined {
    return this.services()
      .filter((service) => service.hostname === hostname)
      .toSorted(byServiceAge)[0];
  }

  getProxyServiceTargets(proxy: LookedUp): readonly ServiceTarget[] {
    return serviceTargets(this.lookup.targetsOf(proxy), (host, namespace) => this.servicesOf(host, namespace));
  }

  getProxyWorkloadLabels(proxy: LookedUp): Readonly<Record<string, string>> | undefined {
    return this.lookup.workloadOf(proxy)?.labels;
  }

  getProxyLocality(proxy: LookedUp): string {
    return this.lookup.workloadOf(proxy)?.locality ?? '';
  }
}
