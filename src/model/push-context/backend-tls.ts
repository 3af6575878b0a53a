/** BackendTLSPolicies configure TLS from gateways to Service ports (GEP-1897). */
import { isLeft } from 'fp-ts/lib/Either.js';
import { type Config, type ConfigKey, compareText, configKeyOf } from '../config/config.ts';
import { type BackendTlsPolicy, everyService } from '../kinds/gateway-api/backend-tls-policy.ts';
import { trustedRootsOfConfigMap } from '../kinds/kubernetes/credential.ts';
import type { Service } from '../services/service.ts';
import type { CredentialIndex } from './credential-index.ts';

type ConfigMaps = Pick<CredentialIndex, 'configMap'>;

/** The same object while the policy and its ConfigMaps are unchanged. */
export interface BackendTls {
  readonly origins: readonly ConfigKey[];
  readonly hostname: string;
  readonly names: readonly string[];
  /** PEM, or the proxy's system roots. Absent if the policy cannot be applied, so that connections must fail. */
  readonly roots?: Uint8Array | 'system';
  readonly problems: readonly BackendTlsProblem[];
}

export interface BackendTlsProblem {
  /** Reasons in conditions of the Gateway API. */
  readonly reason: 'InvalidCACertificateRef' | 'InvalidKind' | 'Invalid';
  readonly message: string;
}

/** If a policy references several ConfigMaps, the valid ones are trusted. */
export function backendTlsOf(policy: Config<BackendTlsPolicy>, configMaps: ConfigMaps): BackendTls {
  const { hostname, subjectAltNames, caCertificateRefs, wellKnownCACertificates } = policy.spec.validation;
  const problems: BackendTlsProblem[] = [];
  const origins: ConfigKey[] = [configKeyOf(policy)];
  const bundles: Uint8Array[] = [];
  for (const { group, kind, name } of caCertificateRefs) {
    if (group !== '' || kind !== 'ConfigMap') {
      problems.push({ reason: 'InvalidKind', message: `caCertificateRefs must be ConfigMaps, got ${kind} ${name}` });
      continue;
    }
    const { namespace } = policy;
    origins.push({ kind, namespace, name });
    const configMap = configMaps.configMap(namespace, name);
    const roots = configMap && trustedRootsOfConfigMap(configMap.spec);
    if (roots === undefined || isLeft(roots)) {
      const reason = roots === undefined ? 'does not exist' : roots.left;
      problems.push({ reason: 'InvalidCACertificateRef', message: `ConfigMap ${namespace}/${name} ${reason}` });
    } else bundles.push(roots.right.certificates);
  }
  if (wellKnownCACertificates !== undefined && wellKnownCACertificates !== 'System') {
    const message = `wellKnownCACertificates must be System, got ${JSON.stringify(wellKnownCACertificates)}`;
    problems.push({ reason: 'Invalid', message });
  }
  if (policy.standsFor !== undefined) problems.push({ reason: 'Invalid', message: 'the policy is not valid' });
  const names = subjectAltNames.map(({ hostname: dnsName, uri }) => dnsName ?? uri!);
  const roots = wellKnownCACertificates === 'System' ? 'system' : bundles.length > 0 ? joinBundles(bundles) : undefined;
  return { origins, hostname, names: names.length > 0 ? names : [hostname], problems, ...(roots && { roots }) };
}

/** PEM files may lack a trailing line break. */
function joinBundles(bundles: readonly Uint8Array[]): Uint8Array {
  return bundles.length === 1
    ? bundles[0]!
    : Buffer.concat(bundles.flatMap((certificateBundle) => [certificateBundle, Buffer.from('\n')]));
}

/** The first policy of a port applies. */
function compareBackendTlsPrecedence(a: Config, b: Config): number {
  return a.creationTimestamp - b.creationTimestamp || compareText(a.name, b.name);
}

export function backendTlsTargetKey(namespace: string, name: string, sectionName = ''): string {
  return `${namespace}/${name}/${sectionName}`;
}

export function policiesByTarget(
  policies: readonly Config<BackendTlsPolicy>[],
): ReadonlyMap<string, Config<BackendTlsPolicy>> {
  const policyByTarget = new Map<string, Config<BackendTlsPolicy>>();
  for (const policy of policies.toSorted(compareBackendTlsPrecedence)) {
    for (const { group, kind, name, sectionName } of policy.spec.targetRefs) {
      const key = backendTlsTargetKey(policy.namespace, name, sectionName);
      if (group === '' && kind === 'Service' && !policyByTarget.has(key)) policyByTarget.set(key, policy);
    }
  }
  return policyByTarget;
}

/** Targets from narrowest to widest. The policy of a placeholder may have an empty namespace, or apply to every Service. */
function targetsOf({ namespace, name }: Service['origin']): readonly (readonly [namespace: string, name: string])[] {
  return [
    [namespace, name],
    ['', name],
    [namespace, everyService],
    ['', everyService],
  ];
}

interface ReadPolicy {
  readonly tls: BackendTls;
  readonly configMaps: readonly (Config | undefined)[];
}

export class BackendTlsIndex {
  readonly #policyByTarget: ReadonlyMap<string, Config<BackendTlsPolicy>>;
  readonly #readPolicies = new Map<Config<BackendTlsPolicy>, ReadPolicy>();
  readonly #configMaps: ReadonlySet<string>;
  readonly #objects: ReadonlySet<string>;

  constructor(policies: readonly Config<BackendTlsPolicy>[], configMaps: ConfigMaps, previous?: BackendTlsIndex) {
    this.#policyByTarget = policiesByTarget(policies);
    this.#objects = new Set([...this.#policyByTarget.keys()].map((key) => key.slice(0, key.lastIndexOf('/'))));
    const referencedConfigMaps = new Set<string>();
    for (const policy of policies) {
      const names = policy.spec.validation.caCertificateRefs.map(({ name }) => name);
      for (const name of names) referencedConfigMaps.add(`${policy.namespace}/${name}`);
      const usedConfigMaps = names.map((name) => configMaps.configMap(policy.namespace, name));
      const previousRead = previous === undefined ? undefined : previous.#readPolicies.get(policy);
      const isUnchanged = previousRead?.configMaps.every(
        (configMapUsed, index) => configMapUsed === usedConfigMaps[index],
      );
      this.#readPolicies.set(
        policy,
        isUnchanged ? previousRead! : { tls: backendTlsOf(policy, configMaps), configMaps: usedConfigMaps },
      );
    }
    this.#configMaps = referencedConfigMaps;
  }

  /** A policy for the port has priority over one for the Service. */
  settingsFor({ origin }: Pick<Service, 'origin'>, portName: string): BackendTls | undefined {
    if (this.#policyByTarget.size === 0 || origin.kind !== 'Service') return undefined;
    for (const [namespace, name] of targetsOf(origin)) {
      const find = (section?: string) => this.#policyByTarget.get(backendTlsTargetKey(namespace, name, section));
      const policy = (portName === '' ? undefined : find(portName)) ?? find();
      if (policy !== undefined) return this.#readPolicies.get(policy)!.tls;
    }
    return undefined;
  }

  hasPolicyFor({ origin }: Pick<Service, 'origin'>): boolean {
    if (this.#objects.size === 0 || origin.kind !== 'Service') return false;
    return targetsOf(origin).some(([namespace, name]) => this.#objects.has(`${namespace}/${name}`));
  }

  usesConfigMap(namespace: string, configMap: string): boolean {
    return this.#configMaps.has(`${namespace}/${configMap}`);
  }
}
