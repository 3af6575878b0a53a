/** The way to the control plane: the agent's own, and that of its Envoy, which leads through it. */
import { bootstrapPatchesMachine } from '../../machines/agent/bootstrap/bootstrap-patches.machine.ts';
import { identityName } from '../../machines/agent/secrets/held-secrets.ts';
import type { IdentitySettings } from '../../machines/agent/settings.ts';
import { isOn } from '../model/fields/switches.ts';
import type { FileTurns } from '../runtime/files/file-turns.ts';
import type { Logger } from '../runtime/output/log.ts';
import type { Ownership } from '../runtime/ownership.ts';
import type { AgentProgram } from './agent-program.ts';
import { askForPatches, type BootstrapPatches } from './bootstrap/bootstrap-patches.ts';
import { firstRun } from './bootstrap/first-verdict.ts';
import type { PrepareEnvironment } from './bootstrap/prepare-epoch.ts';
import type { DnsTables } from './dns/dns-tables.ts';
import type { ToldFiles } from './envoy/record/told-files.ts';
import { askWorkload } from './health/workload-probe.ts';
import { ControlPlaneCredentials } from './identity/control-plane-credentials.ts';
import type { ToldRoots } from './identity/told-roots.ts';
import type { SecretVault } from './secrets/secret-vault.ts';
import type { UpstreamEnvironment } from './xds/upstream.ts';
import { workloadXds } from './xds/workload-xds.ts';
import type { XdsActivity } from './xds/xds-activity.ts';
import { xdsHeaders } from './xds/xds-headers.ts';

export type WayToControlPlane = Pick<UpstreamEnvironment, 'discoveryAddress' | 'credentials' | 'headers'>;

export function wayToControlPlane(
  { options, log }: AgentProgram,
  { vault, told, turns }: { vault: SecretVault; told: ToldRoots; turns: FileTurns },
): WayToControlPlane {
  const { config, env } = options;
  const credentials = new ControlPlaneCredentials({
    config,
    env,
    own: () => vault.newestPair(identityName),
    told,
    turns,
  });
  const { headers, warnings } = xdsHeaders(env);
  for (const warning of warnings) log.write(warning);
  const { discoveryAddress } = config;
  return {
    discoveryAddress,
    credentials: (shows, stopped) => credentials.read('xds', discoveryAddress, shows, stopped),
    headers,
  };
}

/** A bootstrap that the control plane has not patched. */
export function unpatched({ source, admin }: Pick<PrepareEnvironment, 'source' | 'admin'>): () => object {
  return () => ('bootstrap' in source ? source.bootstrap(admin.port, firstRun) : {});
}

export function patchesWithEffects(
  { source, admin }: PrepareEnvironment,
  { way, patches, log }: { way: WayToControlPlane; patches: BootstrapPatches; log: Logger },
) {
  const bootstrap = unpatched({ source, admin });
  const ask = askForPatches({ ...way, patches, bootstrap, log: log.scope('bootstrap') });
  return bootstrapPatchesMachine.provide({ actors: { ask } });
}

/** Envoy's way to the control plane. */
export function xdsProxyWithEffects(
  { options, log, traceLevel }: AgentProgram,
  {
    activity,
    names,
    told,
    way,
    ownership,
    kept,
  }: {
    activity: XdsActivity;
    names: DnsTables | undefined;
    told: ToldRoots;
    way: WayToControlPlane;
    ownership?: Ownership;
    kept?: ToldFiles;
  },
) {
  const { env, identity, workloadProbe, status, config } = options;
  return workloadXds({
    ...way,
    ...(ownership && { ownership }),
    activity,
    log: log.scope('xds'),
    toldRoots: told,
    tellsRoutine: traceLevel === 'full',
    ...(workloadProbe && {
      askWorkload: (stopped) => askWorkload(workloadProbe, { ...status, statusPort: config.statusPort }, stopped),
    }),
    trustBundles: asksForRoots(env.PROXY_CONFIG_XDS_AGENT, identity.settings.source),
    ...(kept && {
      keptBundle: () => kept.read('trust-bundle'),
      keepBundle: (value) => kept.keep('trust-bundle', Buffer.from(value)),
    }),
    ...(names && {
      nameTables: async (table) => {
        await names.take(table);
        kept?.keep('name-table', table);
      },
    }),
  });
}

/**
 * A workload with a certificate of the authority is told by the control plane which roots to trust, before anybody has a certificate of
 * another one; its acknowledgement is what a rotation of the root waits for (spec/identity.md §8).
 */
function asksForRoots(said: string | undefined, source: IdentitySettings['source']): boolean {
  return said ? isOn(said) : source === 'authority';
}
