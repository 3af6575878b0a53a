/**
 * A cluster's name server, to which an agent forwards names that are not in its table: `node name-server.ts ADDRESS NAME=ADDRESS …` resolves these
 * names, and returns NXDOMAIN for all others, over UDP. Prints `ready`.
 */
import { createSocket } from 'node:dgram';
import { AUTHORITATIVE_ANSWER, decode, encode } from 'dns-packet';

const [address, ...nameEntries] = process.argv.slice(2);
const addresses = new Map(nameEntries.map((entry) => entry.split('=') as [string, string]));
const nameError = 3;

const server = createSocket('udp4', (message, { port, address: client }) => {
  const { id = 0, questions = [] } = decode(message);
  const { name = '', type } = questions[0] ?? {};
  const data = addresses.get(name);
  const flags = AUTHORITATIVE_ANSWER | (data === undefined ? nameError : 0);
  const records = data === undefined || type !== 'A' ? [] : [{ type: 'A' as const, name, ttl: 30, data }];
  server.send(encode({ type: 'response', id, flags, questions, answers: records }), port, client);
});
server.bind(53, address, () => process.stdout.write('ready\n'));
