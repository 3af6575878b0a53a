export interface InterceptionFlag {
  /** In commander's syntax, such as `-p, --envoy-port <port>`; a switch has `[true|false]`. */
  readonly syntax: string;
  readonly variable: string;
  readonly byDefault: string;
  readonly meaning: string;
  /** Omitted in `--help`. */
  readonly rare?: boolean;
}

const flag = (
  syntax: string,
  defaultText: string,
  meaning: string,
  variable = variableOf(syntax),
): InterceptionFlag => ({
  syntax,
  variable,
  byDefault: defaultText,
  meaning,
});

function variableOf(syntax: string): string {
  return nameOf(syntax).toUpperCase().replaceAll('-', '_');
}

function nameOf(syntax: string): string {
  return /--([a-z0-9-]+)/.exec(syntax)![1]!;
}

const rare = (row: InterceptionFlag): InterceptionFlag => ({ ...row, rare: true });

export const interceptionFlags = {
  envoyPort: flag('-p, --envoy-port <port>', '15001', 'Port that outbound connections are redirected to'),
  inboundCapturePort: flag('-z, --inbound-capture-port <port>', '15006', 'Port for inbound connections'),
  inboundTunnelPort: flag('-e, --inbound-tunnel-port <port>', '15008', 'Port of HBONE, never redirected'),
  proxyUid: flag('-u, --proxy-uid <uids>', '', 'UIDs of the proxy (default $ENVOY_USER, istio-proxy or 1337)'),
  proxyGid: flag('-g, --proxy-gid <gids>', '', 'GIDs of the proxy (default the UIDs)'),
  mode: flag('-m, --istio-inbound-interception-mode <mode>', '', 'REDIRECT (default) or TPROXY'),
  inboundPorts: flag('-b, --istio-inbound-ports <ports>', '', 'Captured inbound ports, or *'),
  inboundPortsExclude: flag('-d, --istio-local-exclude-ports <ports>', '', 'Excluded inbound ports, with -b *'),
  excludeInterfaces: flag('-c, --istio-exclude-interfaces <nics>', '', 'Excluded network interfaces'),
  outboundRanges: flag('-i, --istio-service-cidr <ranges>', '', 'Captured outbound IP ranges, or *'),
  outboundRangesExclude: flag('-x, --istio-service-exclude-cidr <ranges>', '', 'Excluded outbound IP ranges'),
  outboundPorts: flag('-q, --istio-outbound-ports <ports>', '', 'Additional captured outbound ports'),
  outboundPortsExclude: flag('-o, --istio-local-outbound-ports-exclude <ports>', '', 'Excluded outbound ports'),
  kubevirtInterfaces: flag(
    '-k, --kube-virt-interfaces <nics>',
    '',
    'Interfaces whose inbound traffic is treated as outbound',
  ),
  tproxyMark: flag('-t, --istio-inbound-tproxy-mark <mark>', '1337', 'Packet mark of TPROXY'),
  tproxyRouteTable: flag('-r, --istio-inbound-tproxy-route-table <table>', '133', 'Routing table of TPROXY'),
  redirectDns: flag(
    '--redirect-dns [true|false]',
    'false',
    'Redirect DNS to port 15053 of the agent',
    'ISTIO_META_DNS_CAPTURE',
  ),
  captureAllDns: flag('--capture-all-dns [true|false]', 'false', 'Redirect DNS to servers outside of resolv.conf, too'),
  dropInvalid: flag('--drop-invalid [true|false]', 'false', 'Drop packets in an invalid state', 'INVALID_DROP'),
  dualStack: flag('--dual-stack [true|false]', 'false', 'Add IPv6 rules on IPv4-only hosts, too', 'ISTIO_DUAL_STACK'),
  dryRun: flag('-n, --dry-run [true|false]', 'false', 'Print commands and rules, change nothing'),
  restoreFormat: flag('-f, --restore-format [true|false]', 'true', 'Use iptables-restore; false: one command per rule'),
  outputPaths: flag('--output-paths <file>', '', 'File to write the rules to'),
  cleanupOnly: flag('--cleanup-only [true|false]', 'false', 'Remove the redirection'),
  reconcile: flag('--reconcile [true|false]', 'false', 'Replace existing rules that differ'),
  forceApply: rare(flag('--force-apply [true|false]', 'false', 'Apply rules without reading existing ones')),
  nativeNftables: flag('--native-nftables [true|false]', 'false', 'Use nft instead of iptables (g4)'),
  skipRuleApply: flag('--skip-rule-apply [true|false]', 'false', 'Apply no rules'),
  runValidation: flag('--run-validation [true|false]', 'false', 'Check that connections are captured'),
  probePort: flag('--iptables-probe-port <port>', '15002', 'Port of the validation'),
  probeTimeout: flag('--probe-timeout <duration>', '5s', 'Timeout of the validation'),
  traceLogging: rare(flag('--iptables-trace-logging [true|false]', 'false', 'Log to netfilter group 1337')),
  networkNamespace: rare(
    flag('--network-namespace <file>', '', 'Apply the rules in this network namespace (/proc/PID/ns/net)'),
  ),
  cniMode: rare(flag('--cni-mode [true|false]', 'false', 'Run by the CNI plugin')),
  hostNsenterExec: rare(flag('--host-nsenter-exec [true|false]', 'false', 'Use programs of the host')),
  generation: flag(
    '--generation <g3|g4>',
    'g3',
    'Rules of Istio 1.16 (g3) or of current Istio (g4)',
    'ISTIO_IPTABLES_GENERATION',
  ),
  forceIpv6: rare(flag('--force-ipv6 <true|false>', '', 'Override IPv6 detection', 'ISTIO_IPTABLES_FORCE_IPV6')),
  resolvConf: rare(flag('--resolv-conf <file>', '/etc/resolv.conf', 'Name servers', 'ISTIO_IPTABLES_RESOLV_CONF')),
} as const satisfies Record<string, InterceptionFlag>;

export type FlagName = keyof typeof interceptionFlags;

/** A switch without value is `true`. */
export type GivenFlags = Readonly<Partial<Record<FlagName, string | boolean>>>;

export function flagSyntax(name: FlagName): string {
  return `--${nameOf(interceptionFlags[name].syntax)}`;
}
