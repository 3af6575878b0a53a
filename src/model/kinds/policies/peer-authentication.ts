import type { PolicyScope } from './policy-target.ts';

/** `UNSET` inherits from the next wider policy. */
export type MutualTlsMode = 'UNSET' | 'DISABLE' | 'PERMISSIVE' | 'STRICT';

export interface PeerAuthentication extends Pick<PolicyScope, 'selector'> {
  readonly mtls?: MutualTlsMode;
  readonly portLevelMtls?: Readonly<Record<string, MutualTlsMode>>;
}
