/** The agent's DNS server on a free port in a separate process, for queries from outside. Sends the port to its parent. */
import { createSocket } from 'node:dgram';
import { create, toBinary } from '@bufbuild/protobuf';
import { DnsCounts } from '../../src/agent/dns/dns-counts.ts';
import { DnsServer } from '../../src/agent/dns/dns-server.ts';
import { DnsUpstream } from '../../src/agent/dns/dns-upstream.ts';
import { NameTableSchema } from '../../src/gen/istio/networking/nds/v1/nds_pb.ts';
import { DnsNames } from '../../src/runtime/dns/dns-names.ts';
import { readNameTableInSteps } from '../../src/runtime/dns/name-table.ts';
import { runToEnd } from '../../src/runtime/turns.ts';
import { freePorts } from '../harness/free-ports.ts';

/** Echoes queries without parsing them, to measure the delay by other load of the machine. */
function echo(): void {
  const socket = createSocket('udp4', (message, { port, address }) => {
    // Authoritative response whose header has one record.
    message.set([0x84, 0x00, 0, 1, 0, 1], 2);
    socket.send(message, port, address);
  });
  socket.bind(0, '127.0.0.1', () => process.send!(socket.address().port));
}

if (process.argv[3] === 'echo') echo();
const services = Number(process.argv[2]);
const table = Object.fromEntries(
  Array.from({ length: services }, (_, i) => [
    `service-${i}.shop.svc.cluster.local`,
    { registry: 'Kubernetes', shortname: `service-${i}`, namespace: 'shop', ips: [`10.1.${i >> 8}.${i & 255}`] },
  ]),
);
const names = runToEnd(
  DnsNames.of(runToEnd(readNameTableInSteps(toBinary(NameTableSchema, create(NameTableSchema, { table })))), {
    namespace: 'shop',
    domain: 'shop.svc.cluster.local',
    search: 'shop.svc.cluster.local',
  }),
);
const counts = new DnsCounts();
// A port that the kernel chooses for UDP may be in use for TCP.
const [port] = (await freePorts(1)) as [number];
const server = new DnsServer({
  addresses: ['127.0.0.1'],
  port,
  names: () => names,
  forwardBeforeTable: false,
  upstream: new DnsUpstream({ servers: [], timeoutMs: 1, parallel: false }, counts.upstream),
  counts,
  onFailed: (error) => {
    throw error;
  },
});
if (process.argv[3] !== 'echo') process.send!(await server.open());
