/** The status of an Ingress of this class contains the external addresses of the gateway. */
import type { Config } from '../../../model/config/config.ts';
import type { ConfigSet } from '../../../model/config/config-set.ts';
import type { LoadBalancerIngress } from '../../../model/kinds/kubernetes/service.ts';
import { type IngressSettings, ownIngresses } from '../../../model/translation/ingress.ts';
import { type AddressSettings, ingressAddresses } from '../../../model/translation/ingress-addresses.ts';
import { isObject } from '../../../runtime/json-object.ts';
import { type DerivedStatus, objectRef, type StatusDerivation } from './derived-status.ts';
import type { StatusFields } from './status-writer.ts';

export interface IngressDerivationOptions {
  readonly objects: () => Pick<ConfigSet, 'Ingress' | 'IngressClass' | 'Service' | 'Pod' | 'Node'>;
  /** Immutable: each change replaces the object. */
  readonly settings: () => Omit<IngressSettings, 'ingressSelector'> & AddressSettings;
  readonly onChanged: (onChanged: () => void) => () => void;
  /** Namespace of the control plane and the gateway. */
  readonly namespace: string;
  readonly isWritten: (object: Config) => boolean;
}

export class IngressDerivation implements StatusDerivation {
  readonly #options: IngressDerivationOptions;
  readonly onChanged: IngressDerivationOptions['onChanged'];

  constructor(options: IngressDerivationOptions) {
    this.#options = options;
    this.onChanged = options.onChanged;
  }

  inputs(): readonly unknown[] {
    const settings = this.#options.settings();
    const { Ingress, IngressClass, Service, Pod, Node } = this.#options.objects();
    if (Ingress.length === 0) return ['nothing'];
    return [settings, Ingress, IngressClass, ...(settings.ingressService === '' ? [Pod, Node] : [Service])];
  }

  async derive(): Promise<ReadonlyMap<string, DerivedStatus>> {
    const [settings, objects] = [this.#options.settings(), this.#options.objects()];
    const writtenIngresses = ownIngresses(objects, settings).filter(this.#options.isWritten);
    const addresses = writtenIngresses.length === 0 ? [] : ingressAddresses(objects, settings, this.#options.namespace);
    const next = (presentStatus: StatusFields): StatusFields | undefined => statusAfter(presentStatus, addresses);
    return new Map(
      writtenIngresses.map((ingress) => [
        `Ingress/${ingress.namespace}/${ingress.name}`,
        {
          ...objectRef(ingress),
          ...(ingress.generation !== undefined && { generation: ingress.generation }),
          facts: addresses,
          next,
        },
      ]),
    );
  }
}

/** Keeps other fields of existing addresses. */
function statusAfter(currentStatus: StatusFields, addresses: readonly LoadBalancerIngress[]): StatusFields | undefined {
  const balancer = isObject(currentStatus.loadBalancer) ? currentStatus.loadBalancer : {};
  const presentIngress: readonly unknown[] = Array.isArray(balancer.ingress) ? balancer.ingress : [];
  const texts = addresses.map((balancerAddress) => balancerAddress.hostname ?? balancerAddress.ip);
  const isUnchanged =
    presentIngress.length === texts.length &&
    presentIngress.every(
      (ingressEntry, index) => isObject(ingressEntry) && (ingressEntry.hostname ?? ingressEntry.ip) === texts[index],
    );
  if (isUnchanged) return undefined;
  const { ingress: _, ...otherFields } = balancer;
  return { ...currentStatus, loadBalancer: { ...otherFields, ...(addresses.length > 0 && { ingress: addresses }) } };
}
