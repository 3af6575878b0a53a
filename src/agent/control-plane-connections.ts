import { resolve } from 'node:path';
import { identityName } from '../../machines/agent/secrets/held-secrets.ts';
import type { IdentitySettings } from '../../machines/agent/settings.ts';
import { isSwitchOn } from '../model/fields/switches.ts';
import { BlockedAddresses } from '../runtime/fences/blocked-addresses.ts';
import { guardedFetch } from '../runtime/fences/guarded-fetch.ts';
import type { FileTurns } from '../runtime/files/file-turns.ts';
import type { Ownership } from '../runtime/ownership.ts';
import type { AgentProgram } from './agent-program.ts';
import type { DnsTables } from './dns/dns-tables.ts';
import type { StoredFiles } from './envoy/record/stored-files.ts';
import { probeWorkload } from './health/workload-probe.ts';
import { ControlPlaneCredentials } from './identity/control-plane-credentials.ts';
import type { DistributedRoots } from './identity/distributed-roots.ts';
import type { SecretVault } from './secrets/secret-vault.ts';
import { ModuleCache } from './wasm/module-cache.ts';
import type { WasmCounts } from './wasm/wasm-counts.ts';
import { maxModuleRedirects, type WasmModules } from './wasm/wasm-module.effects.ts';
import type { UpstreamEnvironment } from './xds/upstream.ts';
import type { XdsActivity } from './xds/xds-activity.ts';
import { xdsHeaders } from './xds/xds-headers.ts';
import { xdsProxyWithEffects } from './xds/xds-proxy.effects.ts';

export type ControlPlaneConnections = Pick<UpstreamEnvironment, 'discoveryAddress' | 'credentials' | 'headers'>;

export function controlPlaneConnections(
  { options, log }: AgentProgram,
  {
    vault,
    distributedRoots,
    turns: fileTurns,
  }: { vault: SecretVault; distributedRoots: DistributedRoots; turns: FileTurns },
): ControlPlaneConnections {
  const { config, env } = options;
  const credentials = new ControlPlaneCredentials({
    config,
    env,
    workloadCertificate: () => vault.newestPair(identityName),
    distributedRoots,
    turns: fileTurns,
  });
  const { headers, warnings } = xdsHeaders(env);
  for (const warning of warnings) log.write(warning);
  const { discoveryAddress } = config;
  return {
    discoveryAddress,
    credentials: (credentialKind, stopSignal) => credentials.read('xds', discoveryAddress, credentialKind, stopSignal),
    headers,
  };
}

export function workloadXds(
  { options, log, traceLevel }: AgentProgram,
  {
    activity,
    names,
    distributedRoots,
    way: connections,
    wasmCounts,
    ownership,
    kept: storedFiles,
  }: {
    activity: XdsActivity;
    names: DnsTables | undefined;
    distributedRoots: DistributedRoots;
    way: ControlPlaneConnections;
    wasmCounts: WasmCounts;
    ownership?: Ownership;
    kept?: StoredFiles;
  },
) {
  const { env, identity, workloadProbe, status, config } = options;
  return xdsProxyWithEffects({
    ...connections,
    ...(ownership && { ownership }),
    activity,
    log: log.scope('xds'),
    receivedRoots: distributedRoots,
    recordsMessages: traceLevel === 'full',
    ...(workloadProbe && {
      probeWorkload: (stopSignal) =>
        probeWorkload(workloadProbe, { ...status, statusPort: config.statusPort }, stopSignal),
    }),
    wasmModules: wasmModules(options, wasmCounts),
    trustBundles: requestsRoots(env.PROXY_CONFIG_XDS_AGENT, identity.settings.source),
    ...(storedFiles && {
      storedBundle: () => storedFiles.read('trust-bundle'),
      storeBundle: (value) => storedFiles.store('trust-bundle', Buffer.from(value)),
    }),
    ...(names && {
      nameTables: async (table) => {
        await names.load(table);
        storedFiles?.store('name-table', table);
      },
    }),
  });
}

const wasmVariables = { blocked: 'BLOCKED_CIDRS_IN_WASM_URLS', allowed: 'ALLOWED_CIDRS_IN_WASM_URLS' } as const;

/** @throws ChartpilotError FLAG_INVALID for an invalid network in a variable */
function wasmModules({ config, env, wasm }: AgentProgram['options'], counts: WasmCounts): WasmModules {
  const networksOf = (name: string): string[] =>
    (env[name] ?? '')
      .split(',')
      .map((item) => item.trim())
      .filter(Boolean);
  const { blocked, allowed } = wasmVariables;
  const addresses = new BlockedAddresses({ blocked: networksOf(blocked), allowed: networksOf(allowed) }, wasmVariables);
  const { insecureRegistries: insecure, moduleExpiryMs: maxUnusedMs, dockerConfig } = wasm;
  const isInsecureHost = (host: string): boolean => insecure.has('*') || insecure.has(host.toLowerCase());
  return {
    cache: new ModuleCache(resolve(config.configPath, 'wasm'), { maxUnusedMs }),
    fetch: guardedFetch(addresses, { maxRedirects: maxModuleRedirects, isInsecure: isInsecureHost }),
    counts,
    pullSecrets: new Map(),
    isInsecure: isInsecureHost,
    dockerConfig,
  };
}

/** A workload with a certificate of the authority subscribes to roots, so that it trusts a new root before peers have certificates of it. */
function requestsRoots(setting: string | undefined, source: IdentitySettings['source']): boolean {
  return setting ? isSwitchOn(setting) : source === 'authority';
}
