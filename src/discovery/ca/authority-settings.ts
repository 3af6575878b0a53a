/** What the environment says of the authority (spec/discovery.md §1.4, §11). */
import { maxTimerMs } from '../../model/fields/duration.ts';
import type { Environment } from '../environment.ts';
import { isPluggedIn } from './authority-material.ts';
import type { LifetimeLimits } from './issuing/leaf-lifetime.ts';

export interface AuthoritySettings {
  /** ROOT_CA_DIR: where a person may plug one in. */
  readonly pluggedInDirectory: string;
  /** SELF_SIGNED_CA_DIR: where one of our own lies, and the journal; empty: in memory, lost with the process. */
  readonly stateDirectory: string;
  /** SELF_SIGNED_CA_SECRET: the Secret of the control plane's namespace where replicas share one; empty: none. */
  readonly secret: string;
  /** K8S_SIGNER; empty: none. */
  readonly kubernetesSigner: string;
  /** EXTERNAL_CA: it signs for workloads. */
  readonly registers: boolean;
  /** APPROVE_CERTIFICATE_REQUESTS: what it is asked for is approved here. */
  readonly approves: boolean;
  readonly rootTtlMs: number;
  /** 0: P-256. */
  readonly rsaBits: number;
  readonly checkMs: number;
  readonly gracePercent: number;
  readonly leaves: LifetimeLimits;
}

/** Istio's word for certificates that a signer of the cluster signs. */
export const kubernetesRegistration = 'ISTIOD_RA_KUBERNETES_API';
const hourMs = 3_600_000;

export function authoritySettingsOf(from: Environment): AuthoritySettings {
  const checkMs = from.timerMs('CITADEL_SELF_SIGNED_ROOT_CERT_CHECK_INTERVAL', hourMs);
  return {
    pluggedInDirectory: from.text('ROOT_CA_DIR', './etc/cacerts'),
    stateDirectory: from.text('SELF_SIGNED_CA_DIR', ''),
    secret: from.text('SELF_SIGNED_CA_SECRET', ''),
    kubernetesSigner: from.text('K8S_SIGNER', ''),
    registers: from.text('EXTERNAL_CA', '') === kubernetesRegistration,
    approves: from.boolean('APPROVE_CERTIFICATE_REQUESTS', true),
    rootTtlMs: from.durationMs('CITADEL_SELF_SIGNED_CA_CERT_TTL', 87_600 * hourMs),
    rsaBits: from.number('CITADEL_SELF_SIGNED_CA_RSA_KEY_SIZE', 0),
    // None: it is never due, and the longest timer that there is looks so.
    checkMs: checkMs || maxTimerMs,
    gracePercent: checkMs === 0 ? 0 : from.percent('CITADEL_SELF_SIGNED_ROOT_CERT_GRACE_PERIOD_PERCENTILE', 20),
    leaves: {
      defaultMs: from.durationMs('DEFAULT_WORKLOAD_CERT_TTL', 24 * hourMs) || 24 * hourMs,
      maxMs: from.durationMs('MAX_WORKLOAD_CERT_TTL', 2_160 * hourMs) || 2_160 * hourMs,
    },
  };
}

/** Whether somebody has seen to an authority: a directory is plugged in, or one of our own has a place. */
export function isAuthorityGiven({ pluggedInDirectory, stateDirectory, secret }: AuthoritySettings): boolean {
  return stateDirectory !== '' || secret !== '' || isPluggedIn(pluggedInDirectory);
}

/** Replicas share it, as a Secret. Files of a person count before it. */
export function isAuthorityShared({ pluggedInDirectory, secret }: AuthoritySettings): boolean {
  return secret !== '' && !isPluggedIn(pluggedInDirectory);
}
