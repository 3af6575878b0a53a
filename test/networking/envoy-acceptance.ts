/** Checks that a real Envoy accepts the generated resources of a golden case. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { create } from '@bufbuild/protobuf';
import type { Listener } from '../../src/gen/envoy/config/listener/v3/listener_pb.ts';
import { SecretSchema } from '../../src/gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.ts';
import { EnvoyResource } from '../../src/networking/index.ts';
import { type CertificateAuthority, createAuthority, type IssuedCertificate } from '../certs/authority.ts';
import { type RealEnvoy, startRealEnvoy } from './ads-envoy.ts';
import { type AdsStandIn, startAdsStandIn } from './ads-stand-in.ts';
import { asJson, generate, readCase, type Section } from './case.ts';

const settleLimitMs = 90_000;

export interface Acceptance {
  readonly refusals: readonly string[];
  /** Numbers of active listeners and clusters, with the expected numbers. */
  readonly listeners: number;
  readonly clusters: number;
  readonly expected: { readonly listeners: number; readonly clusters: number };
  /** Non-zero counters of rejected updates. */
  readonly rejected: readonly string[];
  /** Log lines about deprecated or unknown fields. */
  readonly complaints: readonly string[];
}

/** Creates the certificates of golden cases in a temporary folder. */
export class CaseCertificates {
  readonly directory = mkdtempSync(join(tmpdir(), 'chartpilot-certs-'));
  readonly authority: CertificateAuthority = createAuthority();
  readonly issued: IssuedCertificate = this.authority.issue(['simple.example.com']);

  constructor() {
    writeFileSync(join(this.directory, 'ca.crt'), this.authority.certificate);
    writeFileSync(join(this.directory, 'tls.crt'), this.issued.certificate);
    writeFileSync(join(this.directory, 'tls.key'), this.issued.privateKey);
  }

  remove(): void {
    rmSync(this.directory, { recursive: true, force: true });
  }
}

/** @param binary path of an Envoy, if not the default */
export async function acceptanceOf(
  name: string,
  { directory, issued, authority }: CaseCertificates,
  binary?: string,
): Promise<Acceptance> {
  const golden = readCase(name, directory);
  const resources = generate(golden);
  const secrets = secretNames(resources).map((secret) => secretOf(secret, issued, authority));
  const ads = await startAdsStandIn([...Object.values(onFreePorts(resources)).flat(), ...secrets]);
  const envoy = await startRealEnvoy(ads.port, golden.proxy, binary === undefined ? {} : { binary });
  try {
    const state = await waitUntilSettled(envoy, ads);
    // The two additional static clusters are those of the fake servers.
    const expected = { listeners: resources.listeners.length, clusters: resources.clusters.length + 2 };
    return { refusals: ads.refusals, ...state, expected, complaints: complaints(envoy.log()) };
  } finally {
    await envoy.stop();
    ads.close();
  }
}

/** Lets the operating system assign ports, so that cases do not conflict. */
function onFreePorts(resources: Record<Section, EnvoyResource[]>): Record<Section, EnvoyResource[]> {
  for (const { message } of resources.listeners) {
    const listener = message as Listener;
    const address = listener.address?.address;
    if (listener.bindToPort !== false && address?.case === 'socketAddress') {
      address.value.portSpecifier = { case: 'portValue', value: 0 };
    }
  }
  return resources;
}

/** Names of all secrets that resources refer to. */
export function secretNames(resources: Record<Section, EnvoyResource[]>): string[] {
  const text = JSON.stringify([...resources.clusters, ...resources.listeners].map(asJson));
  return [...new Set([...text.matchAll(/"name":"([^"]+)","sdsConfig"/g)].map((match) => match[1]!))];
}

export function secretOf(name: string, certificate: IssuedCertificate, authority: CertificateAuthority): EnvoyResource {
  const inline = (text: string): { specifier: { case: 'inlineString'; value: string } } => ({
    specifier: { case: 'inlineString', value: text },
  });
  const message =
    name === 'ROOTCA' || name.startsWith('file-root:') || name.endsWith('-cacert')
      ? create(SecretSchema, {
          name,
          type: { case: 'validationContext', value: { trustedCa: inline(authority.certificate) } },
        })
      : create(SecretSchema, {
          name,
          type: {
            case: 'tlsCertificate',
            value: { certificateChain: inline(certificate.certificate), privateKey: inline(certificate.privateKey) },
          },
        });
  return new EnvoyResource(name, SecretSchema, message);
}

interface EnvoyState {
  readonly listeners: number;
  readonly clusters: number;
  readonly rejected: readonly string[];
}

/** Waits until no listener or cluster is warming: all referenced routes and endpoints have been received. */
export async function waitUntilSettled(envoy: RealEnvoy, ads: AdsStandIn): Promise<EnvoyState> {
  const deadline = performance.now() + settleLimitMs;
  for (;;) {
    const stats = new Map(
      (await envoy.admin('/stats'))
        .split('\n')
        .map((line) => line.split(': ') as [string, string])
        .map(([stat, value]) => [stat, Number(value)]),
    );
    const of = (stat: string): number => stats.get(stat) ?? 0;
    const attempts = of('listener_manager.lds.update_attempt') * of('cluster_manager.cds.update_attempt');
    const warming = of('listener_manager.total_listeners_warming') + of('cluster_manager.warming_clusters');
    const hasResponded = of('listener_manager.lds.update_success') + of('listener_manager.lds.update_rejected') > 0;
    if ((attempts > 0 && warming === 0 && hasResponded) || ads.refusals.length > 0) {
      const rejectedStats = [...stats].filter(([stat, value]) => stat.endsWith('.update_rejected') && value > 0);
      return {
        listeners: of('listener_manager.total_listeners_active'),
        clusters: of('cluster_manager.active_clusters'),
        rejected: rejectedStats.map(([stat]) => stat),
      };
    }
    if (performance.now() > deadline) throw new Error(`still warming after ${settleLimitMs} ms:\n${envoy.log()}`);
    await sleep(50);
  }
}

/**
 * Deprecated fields whose replacements behave differently. That of `max_grpc_timeout` would end streams instead of limiting the timeout that clients
 * may request; those of the DNS fields are another type of cluster. The replacement of `common_config` is not in the vendored Envoy API.
 */
const knownDeprecations = [
  ...['RouteAction.max_grpc_timeout', 'Cluster.dns_refresh_rate', 'Cluster.respect_dns_ttl'],
  'OpenTelemetryAccessLogConfig.common_config',
];

/** Deprecated fields, unknown names and other Envoy warnings. */
function complaints(log: string): string[] {
  return log
    .split('\n')
    .filter((line) => /deprecated|unknown|unsupported/i.test(line))
    .filter((line) => !knownDeprecations.some((field) => line.includes(field)));
}
