/** Settings of both programs that are wrong, unknown or without effect: logged once, at start. */
import { type LogEventTable, noAction } from './log-event.ts';

export const optionEvents = {
  'program.flags': {
    level: 'info',
    message: 'command line flags',
    meaning: 'The flags that the program was started with. Tokens are replaced by `…`.',
    action: noAction,
  },
  'option.withoutEffect': {
    level: 'warn',
    message: 'settings have no effect',
    meaning: 'Istio reads these flags or variables; this program does not. `reason` is set if there is a special one.',
    action: 'Remove them, or see docs/compatibility.md for what replaces them.',
  },
  'option.unknown': {
    level: 'warn',
    message: 'unknown flags ignored',
    meaning: 'The program has no such flags.',
    action: 'Check the spelling with `--help`.',
  },
  'option.ignored': {
    level: 'warn',
    message: 'setting ignored',
    meaning: 'The value of the setting cannot be used; the program runs without it.',
    action: 'Correct the value as `reason` describes.',
  },
  'option.fileMissing': {
    level: 'info',
    message: 'configuration file does not exist, using the ConfigMap of the cluster',
    meaning:
      'The file named by the setting does not exist. The ConfigMap of the mesh, or the default, applies until the file exists.',
    action: 'To use a file, check its path.',
  },
  'option.defaulted': {
    level: 'warn',
    message: 'invalid setting, using the default',
    meaning: 'The value of the setting is invalid; `default` applies.',
    action: 'Correct the value as `reason` describes, or remove the setting.',
  },
  'option.capped': {
    level: 'warn',
    message: 'setting exceeds its maximum, using the maximum',
    meaning: 'The value is larger than the program supports; `max` applies.',
    action: 'Set a value of at most `max`.',
  },
  'option.fieldIgnored': {
    level: 'warn',
    message: 'configuration field has no effect',
    meaning: 'A field of the proxy configuration is unknown or has no effect in this agent.',
    action: 'Check the spelling of the field, or remove it.',
  },
  'option.flagsWithoutEffect': {
    level: 'info',
    message: 'flags have no effect',
    meaning: 'pilot-discovery accepts these flags for compatibility and does not use them.',
    action: noAction,
  },
  'option.nonrootDnsPort': {
    level: 'warn',
    message: 'DNS port 53 needs root, using the default address',
    meaning: '`DNS_PROXY_ADDR` names port 53 and the agent does not run as root.',
    action: 'Run the agent as root, or set another port.',
  },
  'option.drainTooShort': {
    level: 'warn',
    message: 'parentShutdownDuration is shorter than drainDuration',
    meaning: 'A hot restart closes requests that are still running on the old Envoy.',
    action: 'Set parentShutdownDuration to more than drainDuration.',
  },
  'option.liveRestoreUnavailable': {
    level: 'warn',
    message: 'live restore not available',
    meaning:
      '`LIVE_RESTORE` is set, but bin/pilot-agent is not the first process of a container: Envoy ends together with its agent.',
    action: 'Start bin/pilot-agent as the entrypoint of the container, or remove the variable.',
  },
  'option.configServedUnverified': {
    level: 'warn',
    message: 'configuration of all namespaces is served to clients without an identity',
    meaning:
      'Any client that reaches an xDS port can read all configuration objects (`GENERATOR: api`). Istio, as a client, has no identity and needs this.',
    action:
      'Restrict access to the ports by the network, or remove `ENABLE_XDS_API_GENERATOR_AUTH=false` if all clients have an identity of the root namespace, as chartpilot has.',
  },
  'option.secretsOnPlaintext': {
    level: 'warn',
    message: 'private keys are served on a port without TLS',
    meaning: '`PILOT_SECRETS_ON_PLAINTEXT` is set: any client of the plaintext port gets private keys.',
    action: 'Remove the variable outside of tests.',
  },
  'option.securePortIncomplete': {
    level: 'warn',
    message: 'xDS over TLS is disabled, certificate files are incomplete',
    meaning: 'The secure port needs all of `--caCertFile`, `--tlsCertFile` and `--tlsKeyFile`.',
    action: 'Set all three flags, or none and an authority (`SELF_SIGNED_CA_DIR`).',
  },
  'option.securePortDisabled': {
    level: 'info',
    message: 'xDS over TLS is disabled',
    meaning: 'There are neither certificate files nor an authority for the secure port.',
    action: 'To enable it, set `--caCertFile`, `--tlsCertFile` and `--tlsKeyFile`, or `SELF_SIGNED_CA_DIR`.',
  },
  'option.connectionsLimited': {
    level: 'info',
    message: 'xDS connection limit lowered to fit the open file limit',
    meaning: 'The process may open `openFiles` files, which is too few for `wanted` connections.',
    action: 'For more connections raise the limit (`ulimit -n`).',
  },
  'option.configSourceIgnored': {
    level: 'warn',
    message: 'configuration source ignored',
    meaning: 'A `configSources` address of the mesh configuration has a scheme that is not supported.',
    action: 'Use `fs:///DIRECTORY`, `k8s://`, or `xds://HOST:PORT` (docs/config-over-xds.md).',
  },
  'option.addressMissing': {
    level: 'warn',
    message: 'network interface has no address',
    meaning: 'The interfaces got no address in time; the proxy is named after the other addresses.',
    action: 'Check the network of the pod or host.',
  },
  'option.cloudMetadataUnavailable': {
    level: 'warn',
    message: 'cloud metadata not available',
    meaning: 'The metadata server of the cloud did not respond; the node has no platform metadata.',
    action: 'Check the metadata server, or set `CLOUD_PLATFORM=none`.',
  },
  'option.statsdUnresolved': {
    level: 'warn',
    message: 'statsd address not resolved, statistics are not sent',
    meaning: 'The host of `statsdUdpAddress` was not resolved when the agent started.',
    action: 'Correct the name or its DNS record, then restart the agent.',
  },
  'option.dnsWithoutUpstream': {
    level: 'warn',
    message: 'DNS server has no upstream',
    meaning: 'resolv.conf could not be read: only names of the mesh are resolved.',
    action: 'Make resolv.conf readable, then restart the agent.',
  },
  'option.dnsUpstreamIsSelf': {
    level: 'warn',
    message: 'DNS upstream is this server, skipping it',
    meaning: 'resolv.conf names the DNS server of this agent, which would forward to itself.',
    action: "Write the host's own name servers into the file that `file` names.",
  },
} as const satisfies LogEventTable;
