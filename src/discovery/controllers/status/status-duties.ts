import type { Config } from '../../../model/config/config.ts';
import type { KindName } from '../../../model/kinds/index.ts';
import type { Logger } from '../../../runtime/output/log.ts';
import type { Duty } from '../../election/duty.ts';
import { resourceOf } from '../../kubernetes/api-resource.ts';
import type { InformerEffects } from '../../kubernetes/api-server.effects.ts';
import type { ApiServer } from '../../kubernetes/api-server.ts';
import type { DeploymentFailures } from '../gateways/deployment-failures.ts';
import { AddressDerivation } from './address-derivation.ts';
import { DerivedStatusDuty } from './derived-status.ts';
import { GatewayApiDerivation } from './gateway-api-derivation.ts';
import { IngressDerivation } from './ingress-derivation.ts';
import type { StatusInputs } from './status-inputs.ts';

export interface StatusDutySources {
  readonly informers: InformerEffects;
  /** The write gates use the same server. */
  readonly server: Pick<ApiServer, 'request'>;
  readonly inputs: StatusInputs;
  readonly domain: string;
  readonly namespace: string;
  readonly revision: string;
  /** PILOT_ENABLE_GATEWAY_API_STATUS */
  readonly writesGatewayApi: boolean;
  /** PILOT_ENABLE_IP_AUTOALLOCATE */
  readonly writesAddresses: boolean;
  readonly log: Pick<Logger, 'warn'>;
}

/**
 * @param gatewayApiLease Lease of this revision; all revisions share that of Ingresses
 * @param failures reported by the duty that deploys Gateways
 */
export function statusDuties(
  sources: StatusDutySources,
  gatewayApiLease: string,
  failures: DeploymentFailures,
): Duty[] {
  const { informers, server, inputs, domain, namespace, revision, writesGatewayApi, writesAddresses, log } = sources;
  const { objects, settings, onChanged } = inputs;
  const writerOptions = {
    server,
    log,
    resourceOf: (kind: string) => informers.servedResource(resourceOf(kind as KindName)),
  };
  // Only objects from files have a source location.
  const isWritten = ({ source }: Config): boolean => source === undefined;
  const gatewayApi = new GatewayApiDerivation({ objects, onChanged, domain, revision, failures, isWritten });
  const ingress = new IngressDerivation({ objects, settings, onChanged, namespace, isWritten });
  const addresses = new AddressDerivation({ objects, onChanged, isWritten });
  return [
    ...(writesGatewayApi
      ? [new DerivedStatusDuty({ ...writerOptions, lease: gatewayApiLease, derivation: gatewayApi })]
      : []),
    new DerivedStatusDuty({ ...writerOptions, lease: 'istio-leader', derivation: ingress }),
    ...(writesAddresses
      ? [new DerivedStatusDuty({ ...writerOptions, lease: 'istio-ip-autoallocate', derivation: addresses })]
      : []),
  ];
}
