/** OptionErrors that people make, and what they are told: the place and the point (spec/discovery.md §4.5). */
import * as E from 'fp-ts/lib/Either.js';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { type KindName, kinds } from './index.ts';

/** Kind, spec, then each expected mistake as path and part of the message. All mistakes must be listed. */
type Case = readonly [kind: KindName, spec: string, ...mistakes: (readonly [path: string, fragment: string])[]];

const route = 'route: [{destination: {host: reviews}}]';

const gatewayCases: Case[] = [
  ['Gateway', 'servers: []', ['servers', 'must not be empty']],
  ['Gateway', 'selector: {app: "*"}', ['selector.app', 'wildcard'], ['servers', 'is required']],
  [
    'Gateway',
    'servers: [{port: {number: 0, name: http, protocol: HTTP}, hosts: ["*"]}]',
    ['servers[0].port.number', 'from 1 to 65535'],
  ],
  [
    'Gateway',
    'servers: [{port: {number: 80, name: http, protocol: HTPP}, hosts: ["*"]}]',
    ['servers[0].port.protocol', 'must be one of HTTP'],
  ],
  [
    'Gateway',
    'servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: [shop]}]',
    ['servers[0].hosts[0]', 'has no dot'],
  ],
  [
    'Gateway',
    'servers: [{port: {number: 80, name: a, protocol: HTTP}, hosts: [a/b/c.d]}, {port: {number: 81, name: a, protocol: HTTP}, hosts: [x.y]}]',
    ['servers[0].hosts[0]', 'namespace/host'],
    ['servers[1].port.name', 'repeats the port name a'],
  ],
  [
    'Gateway',
    'servers: [{port: {number: 80, name: a, protocol: HTTP}, hosts: [x.y]}, {port: {number: 81, name: a, protocol: HTTP}, hosts: [x.y]}]',
    ['servers[1].port.name', 'repeats the port name a of servers[0].port.name'],
  ],
  [
    'Gateway',
    'servers: [{port: {number: 443, name: https, protocol: HTTPS}, hosts: ["*"]}]',
    ['servers[0].tls', 'is required with protocol HTTPS'],
  ],
  [
    'Gateway',
    'servers: [{port: {number: 443, name: https, protocol: HTTPS}, hosts: ["*"], tls: {mode: SIMPLE}}]',
    ['servers[0].tls.serverCertificate', 'or else credentialName'],
    ['servers[0].tls.privateKey', 'or else credentialName'],
  ],
  [
    'Gateway',
    'servers: [{port: {number: 443, name: https, protocol: HTTPS}, hosts: ["*"], tls: {mode: MUTUAL, serverCertificate: a, privateKey: b}}]',
    ['servers[0].tls.caCertificates', 'is required with mode MUTUAL'],
  ],
  [
    'Gateway',
    'servers: [{port: {number: 443, name: https, protocol: HTTPS}, hosts: ["*"], tls: {mode: ISTIO_MUTUAL, credentialName: a}}]',
    ['servers[0].tls', 'must not have credentialName with ISTIO_MUTUAL'],
  ],
  [
    'Gateway',
    'servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"], tls: {mode: SIMPLE, credentialName: a}}]',
    ['servers[0].tls', 'must not be given with protocol HTTP'],
  ],
];

gatewayCases.push([
  'Gateway',
  'servers: [{port: {number: 443, name: https, protocol: HTTPS}, hosts: ["*x.test"], tls: {mode: SIMPLE, credentialName: a}}]',
  ['servers[0].hosts[0]', 'an SNI is matched by no other'],
]);

gatewayCases.push(
  [
    'DestinationRule',
    'host: a\ntrafficPolicy: {loadBalancer: {localityLbSetting: {enabled: true}, zoneAwareLbSetting: {enabled: true, failover: [{from: a, to: a}], failoverPriority: [topology.kubernetes.io/zone]}}}',
    ['trafficPolicy.loadBalancer.zoneAwareLbSetting.failover[0]', 'must differ'],
    ['trafficPolicy.loadBalancer.zoneAwareLbSetting.failoverPriority[0]', 'count anyway'],
    ['trafficPolicy.loadBalancer', 'only one of localityLbSetting and zoneAwareLbSetting'],
  ],
  [
    'DestinationRule',
    'host: a\ntrafficPolicy: {connectionPool: {http: {http2KeepAlive: {interval: 0s, timeout: 1us}}}}',
    ['trafficPolicy.connectionPool.http.http2KeepAlive.interval', 'at least 1ms'],
    ['trafficPolicy.connectionPool.http.http2KeepAlive.timeout', 'at least 1ms'],
  ],
  [
    'RequestAuthentication',
    'jwtRules: [{issuer: a, presence: required}]',
    ['jwtRules[0].presence', 'did you mean REQUIRED?'],
  ],
);

const virtualServiceCases: Case[] = [
  ['VirtualService', 'hosts: [a.b]', ['', 'at least one of http, tls and tcp']],
  ['VirtualService', `hosts: ["*"]\nhttp: [{${route}}]`, ['hosts[0]', 'only for gateways']],
  ['VirtualService', `hosts: ["*.b.c", a.b.c]\nhttp: [{${route}}]`, ['hosts[1]', 'repeats or overlaps *.b.c']],
  ['VirtualService', `hosts: [a.*.c]\nhttp: [{${route}}]`, ['hosts[0]', 'must be *, or *.']],
  ['VirtualService', `gateways: [gw]\nhttp: [{${route}}]`, ['hosts', 'is required with gateways']],
  ['VirtualService', `hosts: [a.b]\ngateways: [a/b/c]\nhttp: [{${route}}]`, ['gateways[0]', 'namespace/name']],
  ['VirtualService', 'http: [{delegate: {name: x}}]', ['http[0].delegate', 'must not delegate']],
  [
    'VirtualService',
    'hosts: [a.b]\nhttp: [{match: [{uri: {prefix: /}}]}]',
    ['http[0]', 'exactly one of route, redirect and directResponse, not none'],
  ],
  ['VirtualService', `hosts: [a.b]\nhttp: [{${route}, redirect: {uri: /x}}]`, ['http[0]', 'not route and redirect']],
  [
    'VirtualService',
    'hosts: [a.b]\nhttp: [{redirect: {uri: /x, redirectCode: 200}, rewrite: {uri: /y}}]',
    ['http[0].redirect.redirectCode', 'from 300 to 399'],
    ['http[0].rewrite', 'must not be given beside redirect'],
  ],
  [
    'VirtualService',
    'hosts: [a.b]\nhttp: [{match: [{uri: {exact: /a}}, {uri: {prefix: /a}}], redirect: {prefixRewrite: /y}}]',
    ['http[0].match[0].uri', 'must be a prefix'],
  ],
  [
    'VirtualService',
    'hosts: [a.b]\nhttp: [{redirect: {prefixRewrite: "/y\\nx"}, rewrite: {uri: /x}}]',
    ['http[0].redirect.prefixRewrite', 'must be one line'],
    ['http[0].rewrite', 'must not be given beside redirect'],
  ],
  [
    'VirtualService',
    'hosts: [a.b]\nhttp: [{redirect: {uri: /x, prefixRewrite: /y}}]',
    ['http[0].redirect', 'only one of uri and prefixRewrite'],
  ],
  [
    'VirtualService',
    `hosts: [a.b]\nhttp: [{${route}, rewrite: {uri: "/a\\rb", authority: "a\\nb"}}]`,
    ['http[0].rewrite.uri', 'must be one line'],
    ['http[0].rewrite.authority', 'must be one line'],
  ],
  [
    'VirtualService',
    'hosts: [a.b]\nhttp: [{redirect: {uri: /x, redirectCode: 304}}]',
    ['http[0].redirect.redirectCode', 'must be 301, 302, 303, 307, 308'],
  ],
  [
    'VirtualService',
    `hosts: [a.b]\nhttp: [{match: [{headers: {"@request.auth.claims": {exact: x}, "a b": {exact: x}}}], ${route}}]`,
    ['http[0].match[0].headers["@request.auth.claims"]', 'must name a claim'],
    ['http[0].match[0].headers["a b"]', 'is not a header name'],
  ],
  [
    'VirtualService',
    'hosts: [a.b]\nhttp: [{redirect: {uri: /x}, rewrite: {uri: /y}}]',
    ['http[0].rewrite', 'must not be given beside redirect'],
  ],
  [
    'VirtualService',
    'hosts: [a.b]\nhttp: [{route: [{destination: {host: x}, weight: -1}, {destination: {hots: x}}]}]',
    ['http[0].route[0].weight', 'must be from 0'],
    ['http[0].route[1].destination.hots', 'did you mean host?'],
    ['http[0].route[1].destination.host', 'is required'],
  ],
  [
    'VirtualService',
    'hosts: [a.b]\nhttp: [{route: [{destination: {host: x}}, {destination: {host: y}}]}]',
    ['http[0].route', 'must not sum to 0'],
  ],
  [
    'VirtualService',
    `hosts: [a.b]\nhttp: [{match: [{uri: {exact: /a, prefix: /b}}, {uri: {}}, {headers: {x: {regex: "("}}}], ${route}}]`,
    ['http[0].match[0].uri', 'only one of exact, prefix and regex'],
    ['http[0].match[1].uri', 'must have exact, prefix or regex'],
    ['http[0].match[2].headers.x.regex', 'RE2 expression'],
  ],
  [
    'VirtualService',
    `hosts: [a.b]\nhttp: [{${route}, headers: {request: {set: {"bad name": x}, add: {ok: "a\\nb"}}}}]`,
    ['http[0].headers.request.set["bad name"]', 'is not a header name'],
    ['http[0].headers.request.add.ok', 'line breaks'],
  ],
  [
    'VirtualService',
    `hosts: [a.b]\nhttp: [{${route}, headers: {response: {set: {half: "50%", no: "%NOTHING%", good: "%START_TIME% 100%%"}}}}]`,
    ['http[0].headers.response.set.half', 'begins no command'],
    ['http[0].headers.response.set.no', 'no command'],
  ],
  [
    'VirtualService',
    `hosts: [a.b]\nhttp: [{${route}, fault: {abort: {httpStatus: 99}, delay: {fixedDelay: 0s, percentage: {value: 101}}}}]`,
    ['http[0].fault.delay.fixedDelay', 'at least 1ms'],
    ['http[0].fault.delay.percentage.value', 'from 0 to 100'],
    ['http[0].fault.abort.httpStatus', 'from 200 to 599'],
  ],
  [
    'VirtualService',
    `hosts: [a.b]\nhttp: [{${route}, fault: {abort: {grpcStatus: UNAVAILBLE}}}]`,
    ['http[0].fault.abort.grpcStatus', 'not the name of a gRPC status'],
  ],
  [
    'VirtualService',
    `hosts: [a.b]\nhttp: [{${route}, fault: {abort: {http2Error: X}}}]`,
    ['http[0].fault.abort.http2Error', 'is not supported'],
  ],
  [
    'VirtualService',
    `hosts: [a.b]\nhttp: [{${route}, timeout: 10, retries: {perTryTimeout: 0.5ms, retryOn: "5xx,oops"}}]`,
    ['http[0].timeout', 'must be a duration such as 1.5s'],
    ['http[0].retries.perTryTimeout', 'at least 1ms'],
    ['http[0].retries.retryOn', '"oops" is neither'],
    ['http[0].retries.attempts', 'at least 1'],
  ],
  [
    'VirtualService',
    `hosts: [a.b]\nhttp: [{${route}, retries: {attempts: 0, retryOn: 5xx}}]`,
    ['http[0].retries.attempts', 'at least 1'],
  ],
  [
    'VirtualService',
    `hosts: [a.b]\nhttp: [{${route}, mirror: {host: x}, mirrors: [{destination: {host: y}}]}]`,
    ['http[0]', 'only one of mirror and mirrors'],
  ],
  [
    'VirtualService',
    'hosts: [a.b]\nhttp: [{directResponse: {status: 200, body: {}}}]',
    ['http[0].directResponse.body', 'exactly one of string and bytes'],
  ],
  [
    'VirtualService',
    `hosts: [a.b]\ntls: [{match: [{sniHosts: [x.y]}], ${route}}]`,
    ['tls[0].match[0].sniHosts[0]', 'not one of the hosts'],
  ],
  ['VirtualService', 'hosts: [a.b]\ntcp: [{}]', ['tcp[0].route', 'is required']],
  [
    'VirtualService',
    `hosts: [a.b]\nexportTo: [".", "."]\nhttp: [{${route}}]`,
    ['exportTo[1]', 'repeats the namespace .'],
  ],
];

const destinationRuleCases: Case[] = [
  ['DestinationRule', '{}', ['host', 'is required']],
  ['DestinationRule', 'host: a_b*', ['host', 'must be *, or *.']],
  ['DestinationRule', 'host: a.b\nsubsets: [{name: v1}, {name: v1}]', ['subsets[1].name', 'repeats the subset v1']],
  ['DestinationRule', 'host: a.b\nsubsets: [{name: "v 1"}]', ['subsets[0].name', 'must be a DNS label']],
  ['DestinationRule', 'host: a.b\ntrafficPolicy: {}', ['trafficPolicy', 'at least one field']],
  [
    'DestinationRule',
    'host: a.b\ntrafficPolicy: {connectionPool: {tcp: {maxConnections: -1, connectTimeout: 1.5ms}}}',
    ['trafficPolicy.connectionPool.tcp.maxConnections', 'must be from 0'],
    ['trafficPolicy.connectionPool.tcp.connectTimeout', 'whole milliseconds'],
  ],
  [
    'DestinationRule',
    'host: a.b\ntrafficPolicy: {connectionPool: {http: {useClientProtocol: true, h2UpgradePolicy: UPGRADE}}}',
    ['trafficPolicy.connectionPool.http.h2UpgradePolicy', 'must not be UPGRADE'],
  ],
  [
    'DestinationRule',
    'host: a.b\ntrafficPolicy: {loadBalancer: {consistentHash: {httpCookie: {path: /}, maglev: {tableSize: 1000}}}}',
    ['trafficPolicy.loadBalancer.consistentHash.httpCookie.name', 'is required'],
    ['trafficPolicy.loadBalancer.consistentHash.maglev.tableSize', 'prime'],
  ],
  [
    'DestinationRule',
    'host: a.b\ntrafficPolicy: {loadBalancer: {consistentHash: {useSourceIp: true, minimumRingSize: 5, maglev: {}}}}',
    ['trafficPolicy.loadBalancer.consistentHash', 'only one of ringHash, maglev, minimumRingSize'],
  ],
  [
    'DestinationRule',
    'host: a.b\ntrafficPolicy: {loadBalancer: {localityLbSetting: {distribute: [{from: r/z, to: {r: 50, s: 40}}], failoverPriority: [x]}}}',
    ['trafficPolicy.loadBalancer.localityLbSetting', 'distribute excludes'],
    ['trafficPolicy.loadBalancer.localityLbSetting.distribute[0].to', 'must sum to 100, not 90'],
  ],
  [
    'DestinationRule',
    'host: a.b\ntrafficPolicy: {loadBalancer: {localityLbSetting: {failover: [{from: a, to: a}]}}}',
    ['trafficPolicy.loadBalancer.localityLbSetting.failover[0]', 'must differ'],
  ],
  [
    'DestinationRule',
    'host: a.b\ntrafficPolicy: {portLevelSettings: [{tls: {mode: MUTUAL}}], tunnel: {protocol: GET, targetHost: x, targetPort: 1}}',
    ['trafficPolicy.portLevelSettings[0].tls.clientCertificate', 'or else credentialName'],
    ['trafficPolicy.portLevelSettings[0].tls.privateKey', 'or else credentialName'],
    ['trafficPolicy.portLevelSettings[0].port', 'is required'],
    ['trafficPolicy.tunnel.protocol', 'must be one of CONNECT, POST'],
  ],
  [
    'DestinationRule',
    'host: a.b\nexportTo: ["*"]\nworkloadSelector: {matchLabels: {app: x}}',
    ['exportTo', 'own namespace when workloadSelector is given'],
  ],
];

const port = 'ports: [{number: 80, name: http, protocol: HTTP}]';

const serviceEntryCases: Case[] = [
  [
    'ServiceEntry',
    'hosts: []\nports: [{number: 99999, name: x}]',
    ['hosts', 'must not be empty'],
    ['ports[0].number', 'from 1 to 65535'],
  ],
  ['ServiceEntry', `hosts: ["*"]\n${port}`, ['hosts[0]', 'must not be *']],
  ['ServiceEntry', `hosts: [a.b]\naddresses: [1.2.3]\n${port}`, ['addresses[0]', 'IP address or a range']],
  [
    'ServiceEntry',
    `hosts: [a.b]\naddresses: [10.0.0.0/8]\nresolution: DNS\n${port}`,
    ['addresses[0]', 'a range needs'],
  ],
  [
    'ServiceEntry',
    'hosts: [a.b]\nports: [{number: 80, name: a}, {number: 80, name: a}]',
    ['ports[1].name', 'repeats the name a'],
    ['ports[1].number', 'repeats the number 80'],
  ],
  ['ServiceEntry', `hosts: [a.b]\nendpoints: [{address: 1.2.3.4}]\n${port}`, ['endpoints', 'resolution NONE']],
  [
    'ServiceEntry',
    `hosts: [a.b]\nresolution: STATIC\nendpoints: [{address: x.y}, {address: 1.2.3.4, ports: {grpc: 1}}]\n${port}`,
    ['endpoints[0].address', 'must be an IP address with resolution STATIC'],
    ['endpoints[1].ports.grpc', 'is not the name of a port of the object (http)'],
  ],
  [
    'ServiceEntry',
    `hosts: [a.b]\nresolution: STATIC\nworkloadSelector: {labels: {app: x}}\nendpoints: [{address: 1.2.3.4}]\n${port}`,
    ['', 'only one of endpoints and workloadSelector'],
  ],
  ['ServiceEntry', `hosts: ["*.b"]\nresolution: DNS\n${port}`, ['hosts[0]', 'cannot be resolved: give endpoints']],
  [
    'ServiceEntry',
    `hosts: [a.b]\nresolution: DNS_ROUND_ROBIN\nendpoints: [{address: x.y}, {address: "unix:///s"}]\n${port}`,
    ['endpoints[1].address', 'must not be a unix socket'],
    ['endpoints', 'at most one endpoint'],
  ],
  [
    'ServiceEntry',
    'hosts: [a.b]\nresolution: DYNAMIC_DNS\naddresses: [1.2.3.4]\nports: [{number: 1, name: x, protocol: TCP}]',
    ['addresses', 'must not be given with DYNAMIC_DNS'],
    ['hosts[0]', 'must be a wildcard'],
    ['ports[0].protocol', 'must be HTTP or TLS'],
  ],
  ['ServiceEntry', `hosts: [a.b]\nexportTo: ["~", x]\n${port}`, ['exportTo', 'must stand alone']],
];

const otherCases: Case[] = [
  ['WorkloadEntry', '{}', ['address', 'is required']],
  ['WorkloadEntry', 'address: "not an address"', ['address', 'IP address, a host name or unix']],
  ['WorkloadEntry', 'address: unix:///s\nports: {http: 1}', ['ports', 'must not be given with a unix address']],
  ['WorkloadEntry', 'address: 1.2.3.4\nlabels: {version: 1}', ['labels.version', 'put it in quotes']],
  ['Sidecar', '{}', ['', 'must have ingress, egress']],
  [
    'Sidecar',
    'ingress: [{port: {protocol: HTTP, name: x}, defaultEndpoint: "10.0.0.1:80"}]',
    ['ingress[0].defaultEndpoint', 'must be 127.0.0.1:PORT'],
    ['ingress[0].port.number', 'from 1 to 65535'],
  ],
  [
    'Sidecar',
    'ingress: [{port: {number: 1, protocol: HTTP, name: x}}, {port: {number: 1, protocol: HTTP, name: y}}]',
    ['ingress[1].port.number', 'repeats the port 1'],
  ],
  ['Sidecar', 'egress: [{hosts: [reviews]}]', ['egress[0].hosts[0]', 'must be namespace/host']],
  [
    'Sidecar',
    'egress: [{hosts: ["./*"]}, {port: {number: 80, protocol: HTTP, name: x}, hosts: ["*/*"]}]',
    ['egress[0].port', 'only the last listener'],
  ],
  [
    'Sidecar',
    'egress: [{bind: "unix:///s", port: {number: 80, protocol: HTTP, name: x}, captureMode: IPTABLES, hosts: ["*/*"]}]',
    ['egress[0].port.number', 'must be 0 with a unix bind'],
    ['egress[0].captureMode', 'must be DEFAULT or NONE'],
  ],
  [
    'Sidecar',
    'workloadSelector: {labels: {app: "*"}}\negress: [{hosts: []}]',
    ['workloadSelector.labels.app', 'wildcard'],
    ['egress[0].hosts', 'must not be empty'],
  ],
  [
    'Sidecar',
    'outboundTrafficPolicy: {egressProxy: {host: x.y}}',
    ['outboundTrafficPolicy.egressProxy', 'ALLOW_ANY only'],
    ['outboundTrafficPolicy.egressProxy.port', 'is required'],
  ],
];

const cases = [...gatewayCases, ...virtualServiceCases, ...destinationRuleCases, ...serviceEntryCases, ...otherCases];

const named = cases.map(([kind, spec, ...mistakes]) => ({
  kind,
  spec: spec.replaceAll('\n', ' '),
  yaml: spec,
  mistakes,
}));

describe('a bad object', () => {
  it.each(named)('is refused with every mistake named: $kind $spec', ({ kind, yaml, mistakes }) => {
    const decoded = kinds[kind].decode(parse(yaml), 'shop');
    const errors = E.isLeft(decoded) ? decoded.left : [];
    expect(errors.map((error) => error.path)).toEqual(mistakes.map(([path]) => path));
    for (const [index, [, fragment]] of mistakes.entries()) expect(errors[index]!.message).toContain(fragment);
  });
});
