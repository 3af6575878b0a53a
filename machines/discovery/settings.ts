import type { AuthorityInput } from './ca/authority.machine.ts';
import type { ServerCertificateInput } from './ca/server-certificate.machine.ts';
import type { ConfigControllerInput } from './config/config-controller.machine.ts';
import type { MeshConfigInput } from './config/mesh-config.machine.ts';
import type { ElectionsInput } from './election/elections.machine.ts';
import type { JwksInput } from './jwks/jwks.machine.ts';
import type { ApiServerInput } from './kubernetes/api-server.machine.ts';
import type { PushInput } from './push/push.machine.ts';
import type { PushQueueInput } from './push/push-queue.machine.ts';
import type { RegistrationsInput } from './registration/registrations.machine.ts';
import type { ServiceRegistryInput } from './registry/service-registry.setup.ts';

/** What a person can set, as far as decisions depend on it. Times in milliseconds. */
export interface DiscoverySettings {
  /** The API server of the cluster that is followed; null: none is. */
  cluster: ApiServerInput | null;
  /** What one replica of many writes there; null: nothing is written. */
  elections: ElectionsInput | null;
  mesh: Omit<MeshConfigInput, 'what'>;
  networks: Omit<MeshConfigInput, 'what'>;
  configs: ConfigControllerInput;
  registries: ServiceRegistryInput;
  /** Whether names of the mesh are resolved over DNS. */
  servesNames: boolean;
  /** Whether the API server of the cluster can call webhooks. */
  servesWebhooks: boolean;
  /** Whether services are read from Consul. */
  readsConsul: boolean;
  /** Of workloads that register themselves. */
  registrations: RegistrationsInput;
  jwks: JwksInput;
  push: PushInput;
  /** Whether xDS is served over TLS as well. */
  secure: boolean;
  /** Whether certificates are signed here. */
  hasAuthority: boolean;
  /** Whether that is by an authority that all replicas share, in the cluster that is followed. */
  sharesAuthority: boolean;
  authority: AuthorityInput;
  serverCertificate: ServerCertificateInput;
  pushQueue: PushQueueInput;
  /** Budget of a graceful stop (`--shutdownDuration`). */
  shutdownMs: number;
}
