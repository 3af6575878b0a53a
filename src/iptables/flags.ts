/** Flags of `istio-iptables` with their environment and defaults (spec/agent.md §10.1). */

export interface InterceptionFlag {
  /** As commander writes it: `-p, --envoy-port <port>`; a switch has `[true|false]`. */
  readonly syntax: string;
  readonly variable: string;
  readonly byDefault: string;
  readonly meaning: string;
  /** Left out of `--help`: few people need it. */
  readonly rare?: boolean;
}

const flag = (syntax: string, byDefault: string, meaning: string, variable = variableOf(syntax)): InterceptionFlag => ({
  syntax,
  variable,
  byDefault,
  meaning,
});

/** `-p, --envoy-port <port>` → `ENVOY_PORT`. */
function variableOf(syntax: string): string {
  return nameOf(syntax).toUpperCase().replaceAll('-', '_');
}

/** `-p, --envoy-port <port>` → `envoy-port`. */
function nameOf(syntax: string): string {
  return /--([a-z0-9-]+)/.exec(syntax)![1]!;
}

const rare = (row: InterceptionFlag): InterceptionFlag => ({ ...row, rare: true });

/** By their names, which are also the keys of what was said. */
export const interceptionFlags = {
  envoyPort: flag('-p, --envoy-port <port>', '15001', 'outbound connections go there'),
  inboundCapturePort: flag('-z, --inbound-capture-port <port>', '15006', 'inbound connections go there'),
  inboundTunnelPort: flag('-e, --inbound-tunnel-port <port>', '15008', 'HBONE, never redirected'),
  proxyUid: flag('-u, --proxy-uid <uids>', '', 'who the proxy is; default: $ENVOY_USER, istio-proxy, 1337'),
  proxyGid: flag('-g, --proxy-gid <gids>', '', 'likewise its groups; default: the uids'),
  mode: flag('-m, --istio-inbound-interception-mode <mode>', '', 'REDIRECT (default) or TPROXY'),
  inboundPorts: flag('-b, --istio-inbound-ports <ports>', '', 'captured inbound ports, or *'),
  inboundPortsExclude: flag('-d, --istio-local-exclude-ports <ports>', '', 'not captured; with -b * only'),
  excludeInterfaces: flag('-c, --istio-exclude-interfaces <nics>', '', 'nothing of them is captured'),
  outboundRanges: flag('-i, --istio-service-cidr <ranges>', '', 'captured destinations, or *'),
  outboundRangesExclude: flag('-x, --istio-service-exclude-cidr <ranges>', '', 'not captured'),
  outboundPorts: flag('-q, --istio-outbound-ports <ports>', '', 'captured outbound ports besides'),
  outboundPortsExclude: flag('-o, --istio-local-outbound-ports-exclude <ports>', '', 'not captured'),
  kubevirtInterfaces: flag('-k, --kube-virt-interfaces <nics>', '', 'what comes from them is outbound'),
  tproxyMark: flag('-t, --istio-inbound-tproxy-mark <mark>', '1337', "mark of TPROXY's packets"),
  tproxyRouteTable: flag('-r, --istio-inbound-tproxy-route-table <table>', '133', 'their routing table'),
  redirectDns: flag(
    '--redirect-dns [true|false]',
    'false',
    'DNS goes to the agent, port 15053',
    'ISTIO_META_DNS_CAPTURE',
  ),
  captureAllDns: flag('--capture-all-dns [true|false]', 'false', "also to servers that resolv.conf doesn't name"),
  dropInvalid: flag('--drop-invalid [true|false]', 'false', 'packets outside of a window', 'INVALID_DROP'),
  dualStack: flag(
    '--dual-stack [true|false]',
    'false',
    'rules of IPv6 whatever addresses the host has',
    'ISTIO_DUAL_STACK',
  ),
  dryRun: flag('-n, --dry-run [true|false]', 'false', 'print what would be done, and do nothing'),
  restoreFormat: flag('-f, --restore-format [true|false]', 'true', 'false: a command for each rule'),
  outputPaths: flag('--output-paths <file>', '', 'also write the rules there'),
  cleanupOnly: flag('--cleanup-only [true|false]', 'false', 'remove the redirection'),
  reconcile: flag('--reconcile [true|false]', 'false', 'replace rules that were made with other flags'),
  forceApply: rare(flag('--force-apply [true|false]', 'false', 'do not look at what is there')),
  nativeNftables: flag('--native-nftables [true|false]', 'false', 'rules of nft instead of iptables (g4)'),
  skipRuleApply: flag('--skip-rule-apply [true|false]', 'false', 'change no rule'),
  runValidation: flag('--run-validation [true|false]', 'false', 'try whether connections are captured'),
  probePort: flag('--iptables-probe-port <port>', '15002', 'port that the trial connects to'),
  probeTimeout: flag('--probe-timeout <duration>', '5s', 'for the trial'),
  traceLogging: rare(flag('--iptables-trace-logging [true|false]', 'false', 'netfilter log group 1337')),
  networkNamespace: rare(flag('--network-namespace <file>', '', 'another one than this')),
  cniMode: rare(flag('--cni-mode [true|false]', 'false', 'run by the CNI plug-in')),
  hostNsenterExec: rare(flag('--host-nsenter-exec [true|false]', 'false', "with the host's programs")),
  generation: flag('--generation <g3|g4>', 'g3', "whose rules: Istio 1.16's, or today's", 'ISTIO_IPTABLES_GENERATION'),
  forceIpv6: rare(
    flag('--force-ipv6 <true|false>', '', 'instead of looking at addresses', 'ISTIO_IPTABLES_FORCE_IPV6'),
  ),
  resolvConf: rare(flag('--resolv-conf <file>', '/etc/resolv.conf', 'name servers', 'ISTIO_IPTABLES_RESOLV_CONF')),
} as const satisfies Record<string, InterceptionFlag>;

export type FlagName = keyof typeof interceptionFlags;

/** What was said on the command line, by the flag's key; a switch without a value is `true`. */
export type SaidFlags = Readonly<Partial<Record<FlagName, string | boolean>>>;

/** As a person writes it: `--envoy-port`. */
export function spelled(name: FlagName): string {
  return `--${nameOf(interceptionFlags[name].syntax)}`;
}
