export type IpFamily = 'v4' | 'v6';
export const ipFamilies: readonly IpFamily[] = ['v4', 'v6'];

/** `g3` has the rules of Istio 1.16, `g4` those of current versions. */
export type RuleGeneration = 'g3' | 'g4';

/** `REDIRECT` rewrites the destination; `TPROXY` keeps it and needs NET_ADMIN in Envoy. */
export type InterceptionMode = 'REDIRECT' | 'TPROXY';

export type AllOr<Item> = '*' | readonly Item[];

/** `all-but` captures outbound connections of all groups except these. */
export interface OwnerGroups {
  readonly captured: 'all-but' | 'only';
  readonly groups: readonly string[];
}

/** Values are validated, so that each is at most one word of a rule. */
export interface Interception {
  readonly generation: RuleGeneration;
  readonly proxyPort: number;
  readonly inboundCapturePort: number;
  /** The HBONE port is never redirected. */
  readonly inboundTunnelPort: number;
  readonly proxyUids: readonly string[];
  readonly proxyGids: readonly string[];
  readonly mode: InterceptionMode;
  readonly inboundPorts: AllOr<number>;
  /** Applies only if all inbound ports are captured. */
  readonly inboundPortsExclude: readonly number[];
  readonly excludeInterfaces: readonly string[];
  /** The virtual machines' traffic arrives on these interfaces and counts as outbound. */
  readonly kubevirtInterfaces: readonly string[];
  readonly outboundRanges: Readonly<Record<IpFamily, AllOr<string>>>;
  readonly outboundRangesExclude: Readonly<Record<IpFamily, readonly string[]>>;
  readonly outboundPorts: readonly number[];
  readonly outboundPortsExclude: readonly number[];
  readonly ownerGroups: OwnerGroups;
  /** The application's connections to itself on loopback have IPv4 addresses of this range; for IPv6, the range is `::1/128`. */
  readonly loopbackRange: string;
  readonly tproxyMark: number;
  readonly tproxyRouteTable: number;
  readonly dropInvalid: boolean;
  readonly redirectDns: boolean;
  /** If off, only name servers in resolv.conf are captured. */
  readonly captureAllDns: boolean;
  readonly dnsServers: Readonly<Record<IpFamily, readonly string[]>>;
  /** A rule before each rule logs matching packets to netfilter's log. */
  readonly traceLogging: boolean;
  readonly ipv6: boolean;
}

export const dnsCapturePort = 15053;
