import type { Any } from '@bufbuild/protobuf/wkt';
import type { KeepaliveSettingsSchema } from '../../gen/envoy/config/core/v3/protocol_pb.ts';
import { HttpProtocolOptionsSchema } from '../../gen/envoy/extensions/upstreams/http/v3/http_protocol_options_pb.ts';
import { type ApplicationProtocol, isHttp2, isTcp, isTls } from '../../model/fields/protocol.ts';
import type {
  H2UpgradePolicy,
  Http2KeepAlive,
  HttpSettings,
  TcpSettings,
} from '../../model/kinds/destinations/traffic-policy.ts';
import type { NodeType } from '../../model/node/proxy.ts';
import { pack } from '../messages/any.ts';
import type { Init } from '../messages/init.ts';
import { duration, optionalDuration } from '../messages/protobuf-duration.ts';

type OptionsInit = Init<typeof HttpProtocolOptionsSchema>;

export const httpProtocolOptionsKey = 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions';

export interface UpstreamHttp {
  readonly protocol: ApplicationProtocol;
  readonly client: NodeType;
  readonly settings?: HttpSettings | undefined;
  readonly connections?: TcpSettings | undefined;
  readonly meshUpgradePolicy: Exclude<H2UpgradePolicy, 'DEFAULT'>;
  readonly autoSni?: boolean;
  readonly autoSanValidation?: boolean;
}

/**
 * Whether the upstream protocol is HTTP/2 for all clients. A DestinationRule can require HTTP/2 on any port that may carry HTTP, also with TLS
 * origination. The mesh setting applies only to declared HTTP ports.
 */
export function speaksHttp2({ protocol, settings, meshUpgradePolicy }: UpstreamHttp): boolean {
  if (isHttp2(protocol)) return true;
  if (settings?.useClientProtocol || !mayCarryHttp(protocol)) return false;
  const upgradePolicy = settings?.h2UpgradePolicy ?? 'DEFAULT';
  return upgradePolicy === 'DEFAULT'
    ? protocol === 'HTTP' && meshUpgradePolicy === 'UPGRADE'
    : upgradePolicy === 'UPGRADE';
}

function mayCarryHttp(protocol: ApplicationProtocol): boolean {
  return !isTcp(protocol) || isTls(protocol);
}

export function upstreamHttpOptions(upstream: UpstreamHttp): Any | undefined {
  const { settings, connections } = upstream;
  const versions = versionOptions(upstream);
  const idleTimeoutMs = settings?.idleTimeoutMs ?? connections?.idleTimeoutMs;
  const maxConnectionDurationMs = connections?.maxConnectionDurationMs;
  const maxRequestsPerConnection = settings?.maxRequestsPerConnection || undefined;
  const limits = [idleTimeoutMs, maxConnectionDurationMs, maxRequestsPerConnection].some(
    (limit) => limit !== undefined,
  );
  if (versions === undefined && !limits && !upstream.autoSni && !upstream.autoSanValidation) return undefined;
  return pack(HttpProtocolOptionsSchema, {
    ...(limits && {
      commonHttpProtocolOptions: {
        idleTimeout: optionalDuration(idleTimeoutMs),
        maxConnectionDuration: optionalDuration(maxConnectionDurationMs),
        maxRequestsPerConnection,
      },
    }),
    ...((upstream.autoSni || upstream.autoSanValidation) && {
      upstreamHttpProtocolOptions: {
        autoSni: upstream.autoSni ?? false,
        autoSanValidation: upstream.autoSanValidation ?? false,
      },
    }),
    // One of the version options is mandatory.
    upstreamProtocolOptions: versions ?? {
      case: 'explicitHttpConfig',
      value: { protocolConfig: { case: 'httpProtocolOptions', value: {} } },
    },
  });
}

const pingTimeoutMs = 20_000;

function keepAlive({ intervalMs, timeoutMs = pingTimeoutMs }: Http2KeepAlive): Init<typeof KeepaliveSettingsSchema> {
  return { interval: optionalDuration(intervalMs), timeout: duration(timeoutMs) };
}

function versionOptions(upstream: UpstreamHttp): OptionsInit['upstreamProtocolOptions'] {
  const { protocol, settings, client } = upstream;
  const http2 = {
    maxConcurrentStreams: settings?.maxConcurrentStreams || undefined,
    ...(settings?.http2KeepAlive && { connectionKeepalive: keepAlive(settings.http2KeepAlive) }),
  };
  const detectsProtocol = protocol === 'unsupported' && client === 'sidecar' && !speaksHttp2(upstream);
  if (detectsProtocol || (settings?.useClientProtocol && mayCarryHttp(protocol))) {
    return {
      case: 'useDownstreamProtocolConfig',
      value: { httpProtocolOptions: {}, http2ProtocolOptions: http2 },
    };
  }
  if (!speaksHttp2(upstream)) return undefined;
  return {
    case: 'explicitHttpConfig',
    value: { protocolConfig: { case: 'http2ProtocolOptions', value: http2 } },
  };
}
