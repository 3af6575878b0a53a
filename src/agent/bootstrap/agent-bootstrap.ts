import { provesIdentity } from '../../../machines/agent/settings.ts';
import { accessLogCluster } from '../../model/standard-metrics/stream-rules.ts';
import type { LogWarning } from '../../runtime/log-events/log-events.ts';
import { OptionErrors } from '../../runtime/option-errors.ts';
import { packageVersion } from '../../runtime/package-root.ts';
import type { EpochId } from '../envoy/serving-envoy.ts';
import { controlPlaneName } from '../identity/control-plane-roots.ts';
import { localAddresses } from '../options/addresses.ts';
import type { ProxyOptions } from '../options/options.ts';
import { envoyHeader } from '../xds/xds-server.ts';
import { accessLogSocketPath, xdsSocketPath } from '../xds/xds-streams.ts';
import { buildBootstrap } from './bootstrap.ts';
import { buildNode, type NodeFacts } from './node-metadata.ts';
import { templateBootstrap } from './template/template-bootstrap.ts';

export interface BootstrapParameters {
  readonly adminPort: number;
  readonly run: EpochId;
  readonly hasCredentialServer: boolean;
}

export interface GeneratedBootstrap {
  readonly bootstrap: object;
  readonly warnings: readonly LogWarning[];
}

/** @throws ChartpilotError CONFIG_INVALID with all settings that Envoy would reject */
export function agentBootstrap(options: ProxyOptions, order: BootstrapParameters): GeneratedBootstrap {
  const { standardMetrics, config } = options;
  if (standardMetrics === undefined) return generateBootstrap(options, order);
  const generatedBootstrap = generateBootstrap(options, order, accessLogSocketPath(config.configPath));
  // Envoy rejects listeners that log to a missing cluster, so the node does not announce the access log service if a template lacks its cluster.
  return hasAccessLogCluster(generatedBootstrap.bootstrap) ? generatedBootstrap : generateBootstrap(options, order);
}

function hasAccessLogCluster(bootstrap: Bootstrap): boolean {
  return bootstrap.static_resources?.clusters?.some(({ name }) => name === accessLogCluster) ?? false;
}

interface Bootstrap {
  readonly static_resources?: { readonly clusters?: readonly { readonly name?: string }[] };
}

function generateBootstrap(
  options: ProxyOptions,
  { adminPort, run, hasCredentialServer }: BootstrapParameters,
  accessLogSocket?: string,
): GeneratedBootstrap {
  const { addresses, podAnnotations } = options;
  const { settings } = options.identity;
  const facts = {
    ...nodeFacts(options, { hasCredentialServer, hasSecrets: provesIdentity(settings) }),
    config: { ...options.config, proxyAdminPort: adminPort },
    annotations: podAnnotations,
    local: localAddresses(addresses),
    hostIp: options.env.HOST_IP ?? '',
    xdsSocket: xdsSocketPath(options.config.configPath),
    ...(accessLogSocket !== undefined && { accessLogSocket }),
    // Both Envoys of a hot restart have the same node; this header distinguishes their streams.
    xdsHeaders: { [envoyHeader]: `${run.epoch}@${run.baseId}` },
    secretSocket: settings.socket,
  };
  const errors = new OptionErrors();
  const { node, warnings } = buildNode(facts);
  const builtInBootstrap = buildBootstrap({ ...facts, node }, { errors, warnings });
  const { template } = options;
  const bootstrap =
    template === undefined
      ? builtInBootstrap
      : templateBootstrap(template, { ...facts, node }, builtInBootstrap, { errors, warnings });
  errors.throwIfAny();
  return { bootstrap, warnings };
}

export function nodeFacts(
  { outlierLogPath, ...options }: ProxyOptions,
  facts: Pick<NodeFacts, 'hasCredentialServer' | 'hasSecrets'>,
) {
  return {
    ...options,
    ...facts,
    agentVersion: packageVersion(),
    ...(outlierLogPath !== undefined && { outlierLogPath }),
    ...(options.config.controlPlaneAuthPolicy === 'MUTUAL_TLS' && {
      controlPlaneName: controlPlaneName(options.config.discoveryAddress, options.env),
    }),
  };
}
