/**
 * Envoy validates certificate files before it is started with them, because it would start without the listeners of rejected files. Only Envoy knows
 * what it accepts (measured: no RSA below 2048 bits, only the curves P-256, P-384 and P-521, no invalid block after a valid one).
 */

import { envoyLogFormat } from '../envoy/envoy-args.ts';
import { type ValidationEnvironment, type ValidationResult, validateWithEnvoy } from '../envoy/envoy-validation.ts';
import type { CertificateSet } from './certificate-problems.ts';

export type CertificateValidator = (sets: readonly CertificateSet[], signal: AbortSignal) => Promise<ValidatedSet[]>;

/** A set that Envoy rejects, or that it could not validate. */
export interface ValidatedSet {
  readonly set: CertificateSet;
  readonly result: Exclude<ValidationResult, { is: 'taken' }>;
}

/** The configuration of a run is an argument, which is limited to 128 KiB. */
const maxSetsPerRun = 200;
const maxRejectedSets = 16;

export function certificateValidator(
  environment: ValidationEnvironment & { readonly limitMs?: number },
): CertificateValidator {
  const validate = (sets: readonly CertificateSet[], signal: AbortSignal): Promise<ValidationResult> =>
    validateWithEnvoy(environment, setArguments(sets), {
      signal,
      ...(environment.limitMs !== undefined && { limitMs: environment.limitMs }),
    });
  return async (sets, signal) => {
    const failedSets: ValidatedSet[] = [];
    for (let startIndex = 0; startIndex < sets.length; startIndex += maxSetsPerRun) {
      const batch = sets.slice(startIndex, startIndex + maxSetsPerRun);
      const result = await validate(batch, signal);
      if (result.is === 'taken') continue;
      // Further runs would fail as well if Envoy cannot run.
      if (result.is === 'not known' || batch.length === 1) return [...failedSets, { set: batch[0]!, result }];
      for (const set of batch) {
        const setResult = await validate([set], signal);
        if (setResult.is !== 'taken') failedSets.push({ set, result: setResult });
        if (setResult.is === 'not known' || failedSets.length >= maxRejectedSets) return failedSets;
      }
      // If Envoy rejects the sets only together, report that message.
      if (failedSets.length === 0) failedSets.push({ set: batch[0]!, result });
    }
    return failedSets;
  };
}

/** A validation starts no listeners and opens no ports. */
function setArguments(sets: readonly CertificateSet[]): string[] {
  const bootstrap = {
    static_resources: {
      listeners: sets.flatMap((set, index) => ('roots' in set ? [] : [listenerWith(set, index)])),
      clusters: sets.flatMap((set, index) => ('roots' in set ? [clusterWithTrustedRoots(set, index)] : [])),
    },
  };
  return [
    '--mode',
    'validate',
    '--config-yaml',
    JSON.stringify(bootstrap),
    '--log-format',
    envoyLogFormat,
    '-l',
    'error',
  ];
}

const tlsTypes = 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3';

function listenerWith({ certificate, key }: { certificate: string; key: string }, index: number): object {
  const pair = { certificate_chain: { filename: certificate }, private_key: { filename: key } };
  const typed_config = {
    '@type': `${tlsTypes}.DownstreamTlsContext`,
    common_tls_context: { tls_certificates: [pair] },
  };
  return {
    name: `certificate ${index}`,
    address: { pipe: { path: `@chartpilot_judged_certificate_${index}` } },
    filter_chains: [{ transport_socket: { name: 'envoy.transport_sockets.tls', typed_config } }],
  };
}

function clusterWithTrustedRoots({ roots }: { roots: string }, index: number): object {
  const name = `roots ${index}`;
  const typed_config = {
    '@type': `${tlsTypes}.UpstreamTlsContext`,
    common_tls_context: { validation_context: { trusted_ca: { filename: roots } } },
  };
  return {
    name,
    type: 'STATIC',
    load_assignment: { cluster_name: name },
    transport_socket: { name: 'envoy.transport_sockets.tls', typed_config },
  };
}
