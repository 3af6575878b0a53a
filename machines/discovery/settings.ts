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

/** Times in milliseconds. */
export interface DiscoverySettings {
  /** Null without a cluster. */
  cluster: ApiServerInput | null;
  /** Null if nothing is written. */
  elections: ElectionsInput | null;
  mesh: Omit<MeshConfigInput, 'name'>;
  networks: Omit<MeshConfigInput, 'name'>;
  configs: ConfigControllerInput;
  registries: ServiceRegistryInput;
  servesNames: boolean;
  servesWebhooks: boolean;
  readsConsul: boolean;
  registrations: RegistrationsInput;
  jwks: JwksInput;
  push: PushInput;
  secure: boolean;
  hasAuthority: boolean;
  sharesAuthority: boolean;
  authority: AuthorityInput;
  serverCertificate: ServerCertificateInput;
  pushQueue: PushQueueInput;
  /** Maximum duration of a graceful stop (`--shutdownDuration`). */
  shutdownMs: number;
}
