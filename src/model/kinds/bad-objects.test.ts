/** Tests the path and code of each error in invalid objects. */

import * as E from 'fp-ts/lib/Either.js';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { codedError } from '../../../test/fixtures/coded-error.ts';
import { type KindName, kinds } from './index.ts';

/** Kind and spec, then all expected errors as path and `codedViolation`. */
type Case = readonly [kind: KindName, spec: string, ...errors: (readonly [path: string, coded: string])[]];

const route = 'route: [{destination: {host: reviews}}]';

const gatewayCases: Case[] = [
  ['Gateway', 'servers: []', ['servers', 'FIELD_EMPTY']],
  ['Gateway', 'selector: {app: "*"}', ['selector.app', 'FIELD_NOT_ALLOWED got "*"'], ['servers', 'FIELD_REQUIRED']],
  [
    'Gateway',
    'servers: [{port: {number: 0, name: http, protocol: HTTP}, hosts: ["*"]}]',
    ['servers[0].port.number', 'FIELD_OUT_OF_RANGE (from 1 to 65535 (0 only with a unix bind)) got 0'],
  ],
  [
    'Gateway',
    'servers: [{port: {number: 80, name: http, protocol: HTPP}, hosts: ["*"]}]',
    ['servers[0].port.protocol', 'FIELD_VALUE_UNKNOWN got "HTPP" near HTTP'],
  ],
  [
    'Gateway',
    'servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: [shop]}]',
    ['servers[0].hosts[0]', 'FIELD_FORMAT_INVALID got "shop"'],
  ],
  [
    'Gateway',
    'servers: [{port: {number: 80, name: a, protocol: HTTP}, hosts: [a/b/c.d]}, {port: {number: 81, name: a, protocol: HTTP}, hosts: [x.y]}]',
    ['servers[0].hosts[0]', 'FIELD_FORMAT_INVALID got "a/b/c.d"'],
    ['servers[1].port.name', 'FIELD_DUPLICATE got "a" beside servers[0].port.name'],
  ],
  [
    'Gateway',
    'servers: [{port: {number: 80, name: a, protocol: HTTP}, hosts: [x.y]}, {port: {number: 81, name: a, protocol: HTTP}, hosts: [x.y]}]',
    ['servers[1].port.name', 'FIELD_DUPLICATE got "a" beside servers[0].port.name'],
  ],
  [
    'Gateway',
    'servers: [{port: {number: 443, name: https, protocol: HTTPS}, hosts: ["*"]}]',
    ['servers[0].tls', 'FIELD_REQUIRED'],
  ],
  [
    'Gateway',
    'servers: [{port: {number: 443, name: https, protocol: HTTPS}, hosts: ["*"], tls: {mode: SIMPLE}}]',
    ['servers[0].tls.serverCertificate', 'FIELD_REQUIRED'],
    ['servers[0].tls.privateKey', 'FIELD_REQUIRED'],
  ],
  [
    'Gateway',
    'servers: [{port: {number: 443, name: https, protocol: HTTPS}, hosts: ["*"], tls: {mode: MUTUAL, serverCertificate: a, privateKey: b}}]',
    ['servers[0].tls.caCertificates', 'FIELD_REQUIRED'],
  ],
  [
    'Gateway',
    'servers: [{port: {number: 443, name: https, protocol: HTTPS}, hosts: ["*"], tls: {mode: ISTIO_MUTUAL, credentialName: a}}]',
    ['servers[0].tls', 'FIELD_CONFLICT'],
  ],
  [
    'Gateway',
    'servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"], tls: {mode: SIMPLE, credentialName: a}}]',
    ['servers[0].tls', 'FIELDS_EXCLUSIVE'],
  ],
];

gatewayCases.push([
  'Gateway',
  'servers: [{port: {number: 443, name: https, protocol: HTTPS}, hosts: ["*x.test"], tls: {mode: SIMPLE, credentialName: a}}]',
  ['servers[0].hosts[0]', 'FIELD_FORMAT_INVALID got "*x.test"'],
]);

gatewayCases.push(
  [
    'DestinationRule',
    'host: a\ntrafficPolicy: {loadBalancer: {localityLbSetting: {enabled: true}, zoneAwareLbSetting: {enabled: true, failover: [{from: a, to: a}], failoverPriority: [topology.kubernetes.io/zone]}}}',
    ['trafficPolicy.loadBalancer.zoneAwareLbSetting.failover[0]', 'FIELD_CONFLICT'],
    [
      'trafficPolicy.loadBalancer.zoneAwareLbSetting.failoverPriority[0]',
      'FIELD_NOT_ALLOWED got "topology.kubernetes.io/zone"',
    ],
    ['trafficPolicy.loadBalancer', 'FIELDS_EXCLUSIVE (one of localityLbSetting and zoneAwareLbSetting)'],
  ],
  [
    'DestinationRule',
    'host: a\ntrafficPolicy: {connectionPool: {http: {http2KeepAlive: {interval: 0s, timeout: 1us}}}}',
    ['trafficPolicy.connectionPool.http.http2KeepAlive.interval', 'FIELD_OUT_OF_RANGE (at least 1ms) got "0ms"'],
    ['trafficPolicy.connectionPool.http.http2KeepAlive.timeout', 'FIELD_OUT_OF_RANGE (at least 1ms) got "0.001ms"'],
  ],
  [
    'RequestAuthentication',
    'jwtRules: [{issuer: a, presence: required}]',
    ['jwtRules[0].presence', 'FIELD_VALUE_UNKNOWN got "required" near REQUIRED'],
  ],
);

const virtualServiceCases: Case[] = [
  ['VirtualService', 'hosts: [a.b]', ['', 'FIELD_REQUIRED (http, tls or tcp) got none']],
  ['VirtualService', `hosts: ["*"]\nhttp: [{${route}}]`, ['hosts[0]', 'FIELD_NOT_ALLOWED got "*"']],
  ['VirtualService', `hosts: ["*.b.c", a.b.c]\nhttp: [{${route}}]`, ['hosts[1]', 'FIELD_DUPLICATE got "a.b.c"']],
  ['VirtualService', `hosts: [a.*.c]\nhttp: [{${route}}]`, ['hosts[0]', 'FIELD_FORMAT_INVALID got "a.*.c"']],
  ['VirtualService', `gateways: [gw]\nhttp: [{${route}}]`, ['hosts', 'FIELD_REQUIRED']],
  [
    'VirtualService',
    `hosts: [a.b]\ngateways: [a/b/c]\nhttp: [{${route}}]`,
    ['gateways[0]', 'FIELD_FORMAT_INVALID got "a/b/c"'],
  ],
  ['VirtualService', 'http: [{delegate: {name: x}}]', ['http[0].delegate', 'FIELD_NOT_ALLOWED']],
  [
    'VirtualService',
    'hosts: [a.b]\nhttp: [{match: [{uri: {prefix: /}}]}]',
    ['http[0]', 'FIELD_REQUIRED (exactly one of route, redirect and directResponse) got none'],
  ],
  [
    'VirtualService',
    `hosts: [a.b]\nhttp: [{${route}, redirect: {uri: /x}}]`,
    ['http[0]', 'FIELDS_EXCLUSIVE (exactly one of route, redirect and directResponse) got route and redirect'],
  ],
  [
    'VirtualService',
    'hosts: [a.b]\nhttp: [{redirect: {uri: /x, redirectCode: 200}, rewrite: {uri: /y}}]',
    ['http[0].redirect.redirectCode', 'FIELD_OUT_OF_RANGE (from 300 to 399) got 200'],
    ['http[0].rewrite', 'FIELDS_EXCLUSIVE'],
  ],
  [
    'VirtualService',
    'hosts: [a.b]\nhttp: [{match: [{uri: {exact: /a}}, {uri: {prefix: /a}}], redirect: {prefixRewrite: /y}}]',
    ['http[0].match[0].uri', 'FIELD_CONFLICT'],
  ],
  [
    'VirtualService',
    'hosts: [a.b]\nhttp: [{redirect: {prefixRewrite: "/y\\nx"}, rewrite: {uri: /x}}]',
    ['http[0].redirect.prefixRewrite', 'FIELD_NOT_ALLOWED'],
    ['http[0].rewrite', 'FIELDS_EXCLUSIVE'],
  ],
  [
    'VirtualService',
    'hosts: [a.b]\nhttp: [{redirect: {uri: /x, prefixRewrite: /y}}]',
    ['http[0].redirect', 'FIELDS_EXCLUSIVE (one of uri and prefixRewrite)'],
  ],
  [
    'VirtualService',
    `hosts: [a.b]\nhttp: [{${route}, rewrite: {uri: "/a\\rb", authority: "a\\nb"}}]`,
    ['http[0].rewrite.uri', 'FIELD_NOT_ALLOWED'],
    ['http[0].rewrite.authority', 'FIELD_NOT_ALLOWED'],
  ],
  [
    'VirtualService',
    'hosts: [a.b]\nhttp: [{redirect: {uri: /x, redirectCode: 304}}]',
    ['http[0].redirect.redirectCode', 'FIELD_OUT_OF_RANGE (one of 301, 302, 303, 307, 308) got 304'],
  ],
  [
    'VirtualService',
    `hosts: [a.b]\nhttp: [{match: [{headers: {"@request.auth.claims": {exact: x}, "a b": {exact: x}}}], ${route}}]`,
    ['http[0].match[0].headers["@request.auth.claims"]', 'FIELD_FORMAT_INVALID got "@request.auth.claims"'],
    ['http[0].match[0].headers["a b"]', 'FIELD_FORMAT_INVALID got "a b"'],
  ],
  [
    'VirtualService',
    'hosts: [a.b]\nhttp: [{redirect: {uri: /x}, rewrite: {uri: /y}}]',
    ['http[0].rewrite', 'FIELDS_EXCLUSIVE'],
  ],
  [
    'VirtualService',
    'hosts: [a.b]\nhttp: [{route: [{destination: {host: x}, weight: -1}, {destination: {hots: x}}]}]',
    ['http[0].route[0].weight', 'FIELD_OUT_OF_RANGE (from 0 to 2147483647) got -1'],
    ['http[0].route[1].destination.hots', 'FIELD_UNKNOWN near host'],
    ['http[0].route[1].destination.host', 'FIELD_REQUIRED'],
  ],
  [
    'VirtualService',
    'hosts: [a.b]\nhttp: [{route: [{destination: {host: x}}, {destination: {host: y}}]}]',
    ['http[0].route', 'FIELD_OUT_OF_RANGE (weights with a sum of at least 1) got 0'],
  ],
  [
    'VirtualService',
    `hosts: [a.b]\nhttp: [{match: [{uri: {exact: /a, prefix: /b}}, {uri: {}}, {headers: {x: {regex: "("}}}], ${route}}]`,
    ['http[0].match[0].uri', 'FIELDS_EXCLUSIVE (one of exact, prefix and regex)'],
    ['http[0].match[1].uri', 'FIELD_REQUIRED (exact, prefix or regex) got none'],
    ['http[0].match[2].headers.x.regex', 'FIELD_FORMAT_INVALID got "("'],
  ],
  [
    'VirtualService',
    `hosts: [a.b]\nhttp: [{${route}, headers: {request: {set: {"bad name": x}, add: {ok: "a\\nb"}}}}]`,
    ['http[0].headers.request.set["bad name"]', 'FIELD_FORMAT_INVALID got "bad name"'],
    ['http[0].headers.request.add.ok', 'FIELD_NOT_ALLOWED'],
  ],
  [
    'VirtualService',
    `hosts: [a.b]\nhttp: [{${route}, headers: {response: {set: {half: "50%", no: "%NOTHING%", good: "%START_TIME% 100%%"}}}}]`,
    ['http[0].headers.response.set.half', 'FIELD_FORMAT_INVALID got "%"'],
    ['http[0].headers.response.set.no', 'FIELD_FORMAT_INVALID got "%NOTHING%"'],
  ],
  [
    'VirtualService',
    `hosts: [a.b]\nhttp: [{${route}, fault: {abort: {httpStatus: 99}, delay: {fixedDelay: 0s, percentage: {value: 101}}}}]`,
    ['http[0].fault.delay.fixedDelay', 'FIELD_OUT_OF_RANGE (at least 1ms) got "0ms"'],
    ['http[0].fault.delay.percentage.value', 'FIELD_OUT_OF_RANGE (from 0 to 100) got 101'],
    ['http[0].fault.abort.httpStatus', 'FIELD_OUT_OF_RANGE (from 200 to 599) got 99'],
  ],
  [
    'VirtualService',
    `hosts: [a.b]\nhttp: [{${route}, fault: {abort: {grpcStatus: UNAVAILBLE}}}]`,
    ['http[0].fault.abort.grpcStatus', 'FIELD_VALUE_UNKNOWN got "UNAVAILBLE" near UNAVAILABLE'],
  ],
  [
    'VirtualService',
    `hosts: [a.b]\nhttp: [{${route}, fault: {abort: {http2Error: X}}}]`,
    ['http[0].fault.abort.http2Error', 'FIELD_UNSUPPORTED'],
  ],
  [
    'VirtualService',
    `hosts: [a.b]\nhttp: [{${route}, timeout: 10, retries: {perTryTimeout: 0.5ms, retryOn: "5xx,oops"}}]`,
    ['http[0].timeout', 'FIELD_FORMAT_INVALID got 10'],
    ['http[0].retries.perTryTimeout', 'FIELD_OUT_OF_RANGE (at least 1ms) got "0.5ms"'],
    ['http[0].retries.retryOn', 'FIELD_FORMAT_INVALID got "oops"'],
    ['http[0].retries.attempts', 'FIELD_OUT_OF_RANGE (at least 1 with other fields of retries) got 0'],
  ],
  [
    'VirtualService',
    `hosts: [a.b]\nhttp: [{${route}, retries: {attempts: 0, retryOn: 5xx}}]`,
    ['http[0].retries.attempts', 'FIELD_OUT_OF_RANGE (at least 1 with other fields of retries) got 0'],
  ],
  [
    'VirtualService',
    `hosts: [a.b]\nhttp: [{${route}, mirror: {host: x}, mirrors: [{destination: {host: y}}]}]`,
    ['http[0]', 'FIELDS_EXCLUSIVE (one of mirror and mirrors)'],
  ],
  [
    'VirtualService',
    'hosts: [a.b]\nhttp: [{directResponse: {status: 200, body: {}}}]',
    ['http[0].directResponse.body', 'FIELD_REQUIRED (exactly one of string and bytes) got none'],
  ],
  [
    'VirtualService',
    `hosts: [a.b]\ntls: [{match: [{sniHosts: [x.y]}], ${route}}]`,
    ['tls[0].match[0].sniHosts[0]', 'FIELD_REFERENCE_UNKNOWN got "x.y"'],
  ],
  ['VirtualService', 'hosts: [a.b]\ntcp: [{}]', ['tcp[0].route', 'FIELD_REQUIRED']],
  [
    'VirtualService',
    `hosts: [a.b]\nexportTo: [".", "."]\nhttp: [{${route}}]`,
    ['exportTo[1]', 'FIELD_DUPLICATE got "." beside exportTo[0]'],
  ],
];

const destinationRuleCases: Case[] = [
  ['DestinationRule', '{}', ['host', 'FIELD_REQUIRED']],
  ['DestinationRule', 'host: a_b*', ['host', 'FIELD_FORMAT_INVALID got "a_b*"']],
  [
    'DestinationRule',
    'host: a.b\nsubsets: [{name: v1}, {name: v1}]',
    ['subsets[1].name', 'FIELD_DUPLICATE got "v1" beside subsets[0].name'],
  ],
  ['DestinationRule', 'host: a.b\nsubsets: [{name: "v 1"}]', ['subsets[0].name', 'FIELD_FORMAT_INVALID got "v 1"']],
  ['DestinationRule', 'host: a.b\ntrafficPolicy: {}', ['trafficPolicy', 'FIELD_EMPTY']],
  [
    'DestinationRule',
    'host: a.b\ntrafficPolicy: {connectionPool: {tcp: {maxConnections: -1, connectTimeout: 1.5ms}}}',
    ['trafficPolicy.connectionPool.tcp.maxConnections', 'FIELD_OUT_OF_RANGE (from 0 to 2147483647) got -1'],
    [
      'trafficPolicy.connectionPool.tcp.connectTimeout',
      'FIELD_OUT_OF_RANGE (an integer number of milliseconds) got "1.5ms"',
    ],
  ],
  [
    'DestinationRule',
    'host: a.b\ntrafficPolicy: {connectionPool: {http: {useClientProtocol: true, h2UpgradePolicy: UPGRADE}}}',
    ['trafficPolicy.connectionPool.http.h2UpgradePolicy', 'FIELD_CONFLICT'],
  ],
  [
    'DestinationRule',
    'host: a.b\ntrafficPolicy: {loadBalancer: {consistentHash: {httpCookie: {path: /}, maglev: {tableSize: 1000}}}}',
    ['trafficPolicy.loadBalancer.consistentHash.httpCookie.name', 'FIELD_REQUIRED'],
    ['trafficPolicy.loadBalancer.consistentHash.maglev.tableSize', 'FIELD_OUT_OF_RANGE (a prime number) got 1000'],
  ],
  [
    'DestinationRule',
    'host: a.b\ntrafficPolicy: {loadBalancer: {consistentHash: {useSourceIp: true, minimumRingSize: 5, maglev: {}}}}',
    ['trafficPolicy.loadBalancer.consistentHash', 'FIELDS_EXCLUSIVE (one of ringHash, maglev and minimumRingSize)'],
  ],
  [
    'DestinationRule',
    'host: a.b\ntrafficPolicy: {loadBalancer: {localityLbSetting: {distribute: [{from: r/z, to: {r: 50, s: 40}}], failoverPriority: [x]}}}',
    [
      'trafficPolicy.loadBalancer.localityLbSetting',
      'FIELDS_EXCLUSIVE (one of distribute and failover or failoverPriority)',
    ],
    [
      'trafficPolicy.loadBalancer.localityLbSetting.distribute[0].to',
      'FIELD_OUT_OF_RANGE (weights with the sum 100) got 90',
    ],
  ],
  [
    'DestinationRule',
    'host: a.b\ntrafficPolicy: {loadBalancer: {localityLbSetting: {failover: [{from: a, to: a}]}}}',
    ['trafficPolicy.loadBalancer.localityLbSetting.failover[0]', 'FIELD_CONFLICT'],
  ],
  [
    'DestinationRule',
    'host: a.b\ntrafficPolicy: {portLevelSettings: [{tls: {mode: MUTUAL}}], tunnel: {protocol: GET, targetHost: x, targetPort: 1}}',
    ['trafficPolicy.portLevelSettings[0].tls.clientCertificate', 'FIELD_REQUIRED'],
    ['trafficPolicy.portLevelSettings[0].tls.privateKey', 'FIELD_REQUIRED'],
    ['trafficPolicy.portLevelSettings[0].port', 'FIELD_REQUIRED'],
    ['trafficPolicy.tunnel.protocol', 'FIELD_VALUE_UNKNOWN got "GET"'],
  ],
  [
    'DestinationRule',
    'host: a.b\nexportTo: ["*"]\nworkloadSelector: {matchLabels: {app: x}}',
    ['exportTo', 'FIELD_CONFLICT'],
  ],
];

const port = 'ports: [{number: 80, name: http, protocol: HTTP}]';

const serviceEntryCases: Case[] = [
  [
    'ServiceEntry',
    'hosts: []\nports: [{number: 99999, name: x}]',
    ['hosts', 'FIELD_EMPTY'],
    ['ports[0].number', 'FIELD_OUT_OF_RANGE (from 1 to 65535) got 99999'],
  ],
  ['ServiceEntry', `hosts: ["*"]\n${port}`, ['hosts[0]', 'FIELD_NOT_ALLOWED got "*"']],
  ['ServiceEntry', `hosts: [a.b]\naddresses: [1.2.3]\n${port}`, ['addresses[0]', 'FIELD_FORMAT_INVALID got "1.2.3"']],
  [
    'ServiceEntry',
    `hosts: [a.b]\naddresses: [10.0.0.0/8]\nresolution: DNS\n${port}`,
    ['addresses[0]', 'FIELD_CONFLICT'],
  ],
  [
    'ServiceEntry',
    'hosts: [a.b]\nports: [{number: 80, name: a}, {number: 80, name: a}]',
    ['ports[1].name', 'FIELD_DUPLICATE got "a" beside ports[0].name'],
    ['ports[1].number', 'FIELD_DUPLICATE got "80" beside ports[0].number'],
  ],
  ['ServiceEntry', `hosts: [a.b]\nendpoints: [{address: 1.2.3.4}]\n${port}`, ['endpoints', 'FIELDS_EXCLUSIVE']],
  [
    'ServiceEntry',
    `hosts: [a.b]\nresolution: STATIC\nendpoints: [{address: x.y}, {address: 1.2.3.4, ports: {grpc: 1}}]\n${port}`,
    ['endpoints[0].address', 'FIELD_FORMAT_INVALID got "x.y"'],
    ['endpoints[1].ports.grpc', 'FIELD_REFERENCE_UNKNOWN got "grpc"'],
  ],
  [
    'ServiceEntry',
    `hosts: [a.b]\nresolution: STATIC\nworkloadSelector: {labels: {app: x}}\nendpoints: [{address: 1.2.3.4}]\n${port}`,
    ['', 'FIELDS_EXCLUSIVE (one of endpoints and workloadSelector)'],
  ],
  ['ServiceEntry', `hosts: ["*.b"]\nresolution: DNS\n${port}`, ['hosts[0]', 'FIELD_CONFLICT']],
  [
    'ServiceEntry',
    `hosts: [a.b]\nresolution: DNS_ROUND_ROBIN\nendpoints: [{address: x.y}, {address: "unix:///s"}]\n${port}`,
    ['endpoints[1].address', 'FIELD_CONFLICT'],
    ['endpoints', 'FIELD_CONFLICT'],
  ],
  [
    'ServiceEntry',
    'hosts: [a.b]\nresolution: DYNAMIC_DNS\naddresses: [1.2.3.4]\nports: [{number: 1, name: x, protocol: TCP}]',
    ['addresses', 'FIELDS_EXCLUSIVE'],
    ['hosts[0]', 'FIELD_FORMAT_INVALID got "a.b"'],
    ['ports[0].protocol', 'FIELD_FORMAT_INVALID got "TCP"'],
  ],
  ['ServiceEntry', `hosts: [a.b]\nexportTo: ["~", x]\n${port}`, ['exportTo', 'FIELD_CONFLICT']],
];

const otherCases: Case[] = [
  ['WorkloadEntry', '{}', ['address', 'FIELD_REQUIRED']],
  ['WorkloadEntry', 'address: "not an address"', ['address', 'FIELD_FORMAT_INVALID got "not an address"']],
  ['WorkloadEntry', 'address: unix:///s\nports: {http: 1}', ['ports', 'FIELDS_EXCLUSIVE']],
  ['WorkloadEntry', 'address: 1.2.3.4\nlabels: {version: 1}', ['labels.version', 'FIELD_TYPE_INVALID got 1']],
  ['Sidecar', '{}', ['', 'FIELD_REQUIRED (ingress, egress, outboundTrafficPolicy or inboundConnectionPool) got none']],
  [
    'Sidecar',
    'ingress: [{port: {protocol: HTTP, name: x}, defaultEndpoint: "10.0.0.1:80"}]',
    ['ingress[0].defaultEndpoint', 'FIELD_FORMAT_INVALID got "10.0.0.1:80"'],
    ['ingress[0].port.number', 'FIELD_OUT_OF_RANGE (from 1 to 65535) got 0'],
  ],
  [
    'Sidecar',
    'ingress: [{port: {number: 1, protocol: HTTP, name: x}}, {port: {number: 1, protocol: HTTP, name: y}}]',
    ['ingress[1].port.number', 'FIELD_DUPLICATE got "1" beside ingress[0].port.number'],
  ],
  ['Sidecar', 'egress: [{hosts: [reviews]}]', ['egress[0].hosts[0]', 'FIELD_FORMAT_INVALID got "reviews"']],
  [
    'Sidecar',
    'egress: [{hosts: ["./*"]}, {port: {number: 80, protocol: HTTP, name: x}, hosts: ["*/*"]}]',
    ['egress[0].port', 'FIELD_REQUIRED'],
  ],
  [
    'Sidecar',
    'egress: [{bind: "unix:///s", port: {number: 80, protocol: HTTP, name: x}, captureMode: IPTABLES, hosts: ["*/*"]}]',
    ['egress[0].port.number', 'FIELD_OUT_OF_RANGE (0 with a unix bind) got 80'],
    ['egress[0].captureMode', 'FIELD_VALUE_UNKNOWN got "IPTABLES"'],
  ],
  [
    'Sidecar',
    'workloadSelector: {labels: {app: "*"}}\negress: [{hosts: []}]',
    ['workloadSelector.labels.app', 'FIELD_NOT_ALLOWED got "*"'],
    ['egress[0].hosts', 'FIELD_EMPTY'],
  ],
  [
    'Sidecar',
    'outboundTrafficPolicy: {egressProxy: {host: x.y}}',
    ['outboundTrafficPolicy.egressProxy', 'FIELDS_EXCLUSIVE'],
    ['outboundTrafficPolicy.egressProxy.port', 'FIELD_REQUIRED'],
  ],
];

const cases = [...gatewayCases, ...virtualServiceCases, ...destinationRuleCases, ...serviceEntryCases, ...otherCases];

const namedCases = cases.map(([kind, spec, ...expectedErrors]) => ({
  kind,
  spec: spec.replaceAll('\n', ' '),
  yaml: spec,
  mistakes: expectedErrors,
}));

describe('an invalid object', () => {
  it.each(namedCases)('is rejected with all errors: $kind $spec', ({ kind, yaml, mistakes: expectedErrors }) => {
    const decoded = kinds[kind].decode(parse(yaml), 'shop');
    const errors = E.isLeft(decoded) ? decoded.left : [];
    expect(errors.map(codedError)).toEqual(expectedErrors.map(([path, coded]) => `${path}: ${coded}`));
  });
});
