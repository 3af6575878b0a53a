/**
 * The bootstrap of an agent's Envoys, from its options: `proxy` starts them with it, and `bootstrap` writes it for people to
 * read. Both come here, so that what one shows is what the other runs.
 */

import { provesIdentity } from '../../../machines/agent/settings.ts';
import { accessLogCluster } from '../../model/standard-metrics/stream-rules.ts';
import type { LogWarning } from '../../runtime/log-events/log-events.ts';
import { OptionErrors } from '../../runtime/option-errors.ts';
import { packageVersion } from '../../runtime/package-root.ts';
import type { EnvoyRun } from '../envoy/serving-envoy.ts';
import { controlPlaneName } from '../identity/control-plane-roots.ts';
import { localAddresses } from '../options/addresses.ts';
import type { ProxyOptions } from '../options/options.ts';
import { envoyHeader } from '../xds/xds-server.ts';
import { accessLogSocketPath, xdsSocketPath } from '../xds/xds-streams.ts';
import { buildBootstrap } from './bootstrap.ts';
import { buildNode, type NodeFacts } from './node-metadata.ts';
import { templateBootstrap } from './template/template-bootstrap.ts';

export interface BootstrapOrder {
  /** Admin port of this Envoy: one that runs beside another has a port of its own. */
  readonly adminPort: number;
  readonly run: EnvoyRun;
  /** Tokens come from a server of this host. */
  readonly hasCredentialServer: boolean;
}

export interface MadeBootstrap {
  readonly bootstrap: object;
  /** What was left out, and why: for the log. */
  readonly warnings: readonly LogWarning[];
}

/** @throws ChartpilotError CONFIG_INVALID with all mistakes of what Envoy would refuse */
export function agentBootstrap(options: ProxyOptions, order: BootstrapOrder): MadeBootstrap {
  const { standardMetrics, config } = options;
  if (standardMetrics === undefined) return makeBootstrap(options, order);
  const made = makeBootstrap(options, order, accessLogSocketPath(config.configPath));
  // Listeners with a log to a cluster that a template lacks would be rejected: the node must not say that there is one.
  return hasAccessLogCluster(made.bootstrap) ? made : makeBootstrap(options, order);
}

function hasAccessLogCluster(bootstrap: Bootstrap): boolean {
  return bootstrap.static_resources?.clusters?.some(({ name }) => name === accessLogCluster) ?? false;
}

interface Bootstrap {
  readonly static_resources?: { readonly clusters?: readonly { readonly name?: string }[] };
}

function makeBootstrap(
  options: ProxyOptions,
  { adminPort, run, hasCredentialServer }: BootstrapOrder,
  accessLogSocket?: string,
): MadeBootstrap {
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
    // A parent and its child of a hot restart have one node, and a stream each.
    xdsHeaders: { [envoyHeader]: `${run.epoch}@${run.baseId}` },
    secretSocket: settings.socket,
  };
  const errors = new OptionErrors();
  const { node, warnings } = buildNode(facts);
  const builtIn = buildBootstrap({ ...facts, node }, { errors, warnings });
  const { template } = options;
  const bootstrap =
    template === undefined ? builtIn : templateBootstrap(template, { ...facts, node }, builtIn, { errors, warnings });
  errors.throwIfAny();
  return { bootstrap, warnings };
}

/** What the node of a client of this agent consists of: of an Envoy, or of a gRPC program without one. */
export function nodeFacts(
  { outlierLogPath, ...options }: ProxyOptions,
  found: Pick<NodeFacts, 'hasCredentialServer' | 'hasSecrets'>,
) {
  return {
    ...options,
    ...found,
    agentVersion: packageVersion(),
    ...(outlierLogPath !== undefined && { outlierLogPath }),
    ...(options.config.controlPlaneAuthPolicy === 'MUTUAL_TLS' && {
      controlPlaneName: controlPlaneName(options.config.discoveryAddress, options.env),
    }),
  };
}
