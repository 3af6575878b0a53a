/** `security.istio.io` PeerAuthentication, decoded: whether workloads take plaintext, mutual TLS or both. */
import type { PolicyScope } from './policy-target.ts';

/** `UNSET` is taken from the next wider policy. */
export type MutualTlsMode = 'UNSET' | 'DISABLE' | 'PERMISSIVE' | 'STRICT';

export interface PeerAuthentication extends Pick<PolicyScope, 'selector'> {
  readonly mtls?: MutualTlsMode;
  /** Modes by port of the workload. */
  readonly portLevelMtls?: Readonly<Record<string, MutualTlsMode>>;
}
