/** The agent's DNS server by itself, for a test that asks it from outside: says its port to its parent. */
import { create } from '@bufbuild/protobuf';
import { DnsCounts } from '../../src/agent/dns/dns-counts.ts';
import { DnsNames } from '../../src/agent/dns/dns-names.ts';
import { DnsServer } from '../../src/agent/dns/dns-server.ts';
import { DnsUpstream } from '../../src/agent/dns/dns-upstream.ts';
import { NameTableSchema } from '../../src/gen/istio/networking/nds/v1/nds_pb.ts';

const services = Number(process.argv[2]);
const table = Object.fromEntries(
  Array.from({ length: services }, (_, i) => [
    `service-${i}.shop.svc.cluster.local`,
    { registry: 'Kubernetes', shortname: `service-${i}`, namespace: 'shop', ips: [`10.1.${i >> 8}.${i & 255}`] },
  ]),
);
const names = new DnsNames(create(NameTableSchema, { table }), {
  namespace: 'shop',
  domain: 'shop.svc.cluster.local',
  search: 'shop.svc.cluster.local',
});
const counts = new DnsCounts();
const server = new DnsServer({
  addresses: ['127.0.0.1'],
  port: 0,
  names: () => names,
  forwardBeforeTable: false,
  upstream: new DnsUpstream({ servers: [], timeoutMs: 1, parallel: false }, counts.upstream),
  counts,
  failed: (error) => {
    throw error;
  },
});
process.send!(await server.open());
