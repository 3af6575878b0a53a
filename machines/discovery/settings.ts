import type { AuthorityInput } from './authority.machine.ts';
import type { ConfigControllerInput } from './config-controller.machine.ts';
import type { JwksInput } from './jwks.machine.ts';
import type { MeshConfigInput } from './mesh-config.machine.ts';
import type { PushInput } from './push.machine.ts';
import type { PushQueueInput } from './push-queue.machine.ts';
import type { ServerCertificateInput } from './server-certificate.machine.ts';
import type { ServiceRegistryInput } from './service-registry.machine.ts';

/** What a person can set, as far as decisions depend on it. Times in milliseconds. */
export interface DiscoverySettings {
  mesh: Omit<MeshConfigInput, 'what'>;
  networks: Omit<MeshConfigInput, 'what'>;
  configs: ConfigControllerInput;
  registries: ServiceRegistryInput;
  jwks: JwksInput;
  push: PushInput;
  /** Whether xDS is served over TLS as well. */
  secure: boolean;
  /** Whether certificates are signed here. */
  hasAuthority: boolean;
  authority: AuthorityInput;
  serverCertificate: ServerCertificateInput;
  pushQueue: PushQueueInput;
  /** Budget of a graceful stop (`--shutdownDuration`). */
  shutdownMs: number;
}
