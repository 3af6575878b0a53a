/**
 * Envoy's judgement of certificate files, before an Envoy is started with them: one that does not take them would serve
 * without the listener that they are for, and nobody else can know what it takes (measured: no RSA below 2048 bits, no
 * curve but P-256, P-384 and P-521, no broken block after a good one).
 */

import { envoyLogFormat } from '../envoy/envoy-args.ts';
import { type ValidationEnvironment, type Verdict, validateWithEnvoy } from '../envoy/envoy-validation.ts';
import type { CertificateSet } from './certificate-problems.ts';

/** Shows sets of certificates to Envoy. The files are named by their paths. @returns the sets that are not taken */
export type CertificateJudge = (sets: readonly CertificateSet[], signal: AbortSignal) => Promise<JudgedSet[]>;

/** A set that Envoy does not take, or was not asked about in vain. */
export interface JudgedSet {
  readonly set: CertificateSet;
  readonly verdict: Exclude<Verdict, { is: 'taken' }>;
}

/** Sets that are shown to one Envoy: its configuration is an argument, which may have 128 KiB. */
const setsAtOnce = 200;
/** So many mistakes are told in one go of a directory in which all is wrong. */
const mostVerdicts = 16;

/** All at once, which is the rule and costs one run; where some are refused, each by itself. */
export function certificateJudge(environment: ValidationEnvironment & { readonly limitMs?: number }): CertificateJudge {
  const ask = (sets: readonly CertificateSet[], signal: AbortSignal): Promise<Verdict> =>
    validateWithEnvoy(environment, judgementArguments(sets), {
      signal,
      ...(environment.limitMs !== undefined && { limitMs: environment.limitMs }),
    });
  return async (sets, signal) => {
    const judged: JudgedSet[] = [];
    for (let first = 0; first < sets.length; first += setsAtOnce) {
      const some = sets.slice(first, first + setsAtOnce);
      const verdict = await ask(some, signal);
      if (verdict.is === 'taken') continue;
      // Where Envoy cannot be asked, asking for each set by itself would give no other verdict, and take its time.
      if (verdict.is === 'not known' || some.length === 1) return [...judged, { set: some[0]!, verdict }];
      for (const set of some) {
        const ofOne = await ask([set], signal);
        if (ofOne.is !== 'taken') judged.push({ set, verdict: ofOne });
        if (ofOne.is === 'not known' || judged.length >= mostVerdicts) return judged;
      }
      // Refused together and taken apart: what Envoy said of all of them is all that is known.
      if (judged.length === 0) judged.push({ set: some[0]!, verdict });
    }
    return judged;
  };
}

/** Nothing of it opens a port: the listeners are never started. No file of ours is needed. */
function judgementArguments(sets: readonly CertificateSet[]): string[] {
  const bootstrap = {
    static_resources: {
      listeners: sets.flatMap((set, index) => ('roots' in set ? [] : [listenerWith(set, index)])),
      clusters: sets.flatMap((set, index) => ('roots' in set ? [clusterThatTrusts(set, index)] : [])),
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

function clusterThatTrusts({ roots }: { roots: string }, index: number): object {
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
