import { maxTimerMs } from '../../model/fields/duration.ts';
import type { Environment } from '../environment.ts';
import { hasPluggedInCa } from './authority-material.ts';
import type { LifetimeLimits } from './issuing/leaf-lifetime.ts';

export interface AuthoritySettings {
  /** ROOT_CA_DIR */
  readonly pluggedInDirectory: string;
  /** SELF_SIGNED_CA_DIR. If empty, the CA and its rotation journal are in memory only. */
  readonly stateDirectory: string;
  /** SELF_SIGNED_CA_SECRET, in the control plane's namespace. If empty, replicas share no CA. */
  readonly secret: string;
  /** K8S_SIGNER */
  readonly kubernetesSigner: string;
  /** EXTERNAL_CA: whether `kubernetesSigner` signs workload certificates. */
  readonly usesExternalCa: boolean;
  /** APPROVE_CERTIFICATE_REQUESTS: whether this control plane approves its own CertificateSigningRequests. */
  readonly approvesRequests: boolean;
  readonly rootTtlMs: number;
  /** 0 selects an ECDSA P-256 key. */
  readonly rsaBits: number;
  readonly checkMs: number;
  readonly gracePercent: number;
  readonly leaves: LifetimeLimits;
}

/** Istio's EXTERNAL_CA value for a Kubernetes signer. */
export const kubernetesExternalCa = 'ISTIOD_RA_KUBERNETES_API';
const hourMs = 3_600_000;

export function authoritySettingsOf(environment: Environment): AuthoritySettings {
  const checkIntervalMs = environment.timerMs('CITADEL_SELF_SIGNED_ROOT_CERT_CHECK_INTERVAL', hourMs);
  return {
    pluggedInDirectory: environment.text('ROOT_CA_DIR', './etc/cacerts'),
    stateDirectory: environment.text('SELF_SIGNED_CA_DIR', ''),
    secret: environment.text('SELF_SIGNED_CA_SECRET', ''),
    kubernetesSigner: environment.text('K8S_SIGNER', ''),
    usesExternalCa: environment.text('EXTERNAL_CA', '') === kubernetesExternalCa,
    approvesRequests: environment.boolean('APPROVE_CERTIFICATE_REQUESTS', true),
    rootTtlMs: environment.durationMs('CITADEL_SELF_SIGNED_CA_CERT_TTL', 87_600 * hourMs),
    rsaBits: environment.number('CITADEL_SELF_SIGNED_CA_RSA_KEY_SIZE', 0),
    checkMs: checkIntervalMs || maxTimerMs,
    gracePercent:
      checkIntervalMs === 0 ? 0 : environment.percent('CITADEL_SELF_SIGNED_ROOT_CERT_GRACE_PERIOD_PERCENTILE', 20),
    leaves: {
      defaultMs: environment.durationMs('DEFAULT_WORKLOAD_CERT_TTL', 24 * hourMs) || 24 * hourMs,
      maxMs: environment.durationMs('MAX_WORKLOAD_CERT_TTL', 2_160 * hourMs) || 2_160 * hourMs,
    },
  };
}

export function isAuthorityConfigured({ pluggedInDirectory, stateDirectory, secret }: AuthoritySettings): boolean {
  return stateDirectory !== '' || secret !== '' || hasPluggedInCa(pluggedInDirectory);
}

/** A plugged-in directory takes precedence over the Secret. */
export function isSharedAuthority({ pluggedInDirectory, secret }: AuthoritySettings): boolean {
  return secret !== '' && !hasPluggedInCa(pluggedInDirectory);
}
