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

/** Settings of charts. Times in milliseconds. */
export interface DiscoverySettings {
  /** API server of the watched cluster; null without a cluster. */
  cluster: ApiServerInput | null;
  /** Elections of replicas; null if nothing is written. */
  elections: ElectionsInput | null;
  mesh: Omit<MeshConfigInput, 'name'>;
  networks: Omit<MeshConfigInput, 'name'>;
  configs: ConfigControllerInput;
  registries: ServiceRegistryInput;
  /** Whether the mesh's names are resolved over DNS. */
  servesNames: boolean;
  servesWebhooks: boolean;
  readsConsul: boolean;
  registrations: RegistrationsInput;
  jwks: JwksInput;
  push: PushInput;
  /** Whether xDS is also served over TLS. */
  secure: boolean;
  hasAuthority: boolean;
  /** Whether the replicas share an authority in the watched cluster. */
  sharesAuthority: boolean;
  authority: AuthorityInput;
  serverCertificate: ServerCertificateInput;
  pushQueue: PushQueueInput;
  /** Maximum duration of a graceful stop (`--shutdownDuration`). */
  shutdownMs: number;
}
