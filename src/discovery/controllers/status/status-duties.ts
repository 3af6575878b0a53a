/** The duties that write what becomes of objects of Kubernetes' own kinds of routing: those of the Gateway API, and Ingresses. */

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

export interface StatusSources {
  readonly informers: InformerEffects;
  /** The connection that the gates write by. */
  readonly server: Pick<ApiServer, 'request'>;
  readonly inputs: StatusInputs;
  /** `cluster.local`. */
  readonly domain: string;
  /** Namespace of the control plane. */
  readonly namespace: string;
  readonly revision: string;
  /** PILOT_ENABLE_GATEWAY_API_STATUS. */
  readonly ofGatewayApi: boolean;
  /** PILOT_ENABLE_IP_AUTOALLOCATE. */
  readonly ofAddresses: boolean;
  readonly log: Pick<Logger, 'warn'>;
}

/**
 * @param gatewayApiLease of this revision's duty; that of Ingresses is one for all revisions
 * @param failures what the duty that deploys Gateways has found
 */
export function statusDuties(sources: StatusSources, gatewayApiLease: string, failures: DeploymentFailures): Duty[] {
  const { informers, server, inputs, domain, namespace, revision, ofGatewayApi, ofAddresses, log } = sources;
  const { objects, settings, onChanged } = inputs;
  const written = { server, log, resourceOf: (kind: string) => informers.servedResource(resourceOf(kind as KindName)) };
  // What comes from a file has a place there.
  const isWritten = ({ source }: Config): boolean => source === undefined;
  const gatewayApi = new GatewayApiDerivation({ objects, onChanged, domain, revision, failures, isWritten });
  const ingress = new IngressDerivation({ objects, settings, onChanged, namespace, isWritten });
  const addresses = new AddressDerivation({ objects, onChanged, isWritten });
  return [
    ...(ofGatewayApi ? [new DerivedStatusDuty({ ...written, lease: gatewayApiLease, derivation: gatewayApi })] : []),
    new DerivedStatusDuty({ ...written, lease: 'istio-leader', derivation: ingress }),
    ...(ofAddresses
      ? [new DerivedStatusDuty({ ...written, lease: 'istio-ip-autoallocate', derivation: addresses })]
      : []),
  ];
}
