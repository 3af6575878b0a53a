/** Command line of the load generator. Exit code 1 if any request failed. */
import { parseArgs } from 'node:util';
import { generateLoad } from './generator.ts';
import { type ClientKind, clientKinds, type LoadPlan } from './plan.ts';
import { formatReport } from './report.ts';

const usage = `Usage: node test/load/main.ts --url URL [clients] [options]

Clients (none of them retries); at least one:
  --ka N        keep-alive HTTP/1.1, busy
  --slow N      keep-alive HTTP/1.1, idle --interval between requests
  --new N       a connection for each request
  --h2 N        HTTP/2 sessions with 2 streams each
  --stream N    chunked responses of --seconds, back to back
  --tcp N       a TCP connection for each line

Options:
  --url URL          http://host:port or https://host:port
  --authority NAME   host header and TLS server name; the URL's host unless given
  --ca FILE          trusted authority, needed for https
  --path PATH        default /
  --interval MS      pause of slow clients, default 1000
  --pause MS         pause of ka, new and h2 clients, default 0
  --seconds N        length of a streamed response, default 3
  --duration S       default 10
  --requests N       end after this many requests
  --json             the whole report as JSON
`;

const { values } = parseArgs({
  options: {
    ...(Object.fromEntries(clientKinds.map((kind) => [kind, { type: 'string' }])) as Record<
      ClientKind,
      { type: 'string' }
    >),
    url: { type: 'string' },
    authority: { type: 'string' },
    ca: { type: 'string' },
    path: { type: 'string' },
    interval: { type: 'string' },
    pause: { type: 'string' },
    seconds: { type: 'string' },
    duration: { type: 'string' },
    requests: { type: 'string' },
    json: { type: 'boolean' },
    help: { type: 'boolean' },
  },
});

/** Parses a flag as a non-negative number. */
function number(flag: keyof typeof values, fallback: number): number {
  const text = values[flag];
  const value = text === undefined ? fallback : Number(text);
  if (!(value >= 0)) throw new Error(`--${flag}: expected a number, got ${JSON.stringify(text)}`);
  return value;
}

function planFromFlags(url: URL): LoadPlan {
  const isSecure = url.protocol === 'https:';
  if (isSecure && values.ca === undefined) throw new Error('--ca FILE is needed for https');
  const clients = clientKinds
    .map((kind) => ({ kind, count: number(kind, 0) }))
    .filter(({ count }) => count > 0)
    .map(({ kind, count }) => {
      if (kind === 'stream') return { kind, count, path: `/stream?seconds=${number('seconds', 3)}` };
      const pauseMs = kind === 'slow' ? number('interval', 1_000) : number('pause', 0);
      return { kind, count, pauseMs, path: values.path ?? '/' };
    });
  if (clients.length === 0) throw new Error('name at least one kind of client, e.g. --ka 2');
  return {
    target: {
      host: url.hostname,
      port: Number(url.port || (isSecure ? 443 : 80)),
      authority: values.authority ?? url.host,
      ...(isSecure && { caFile: values.ca! }),
    },
    clients,
    maxDurationMs: number('duration', 10) * 1_000,
    ...(values.requests !== undefined && { maxRequests: number('requests', 0) }),
  };
}

if (values.help === true || values.url === undefined) {
  process.stdout.write(usage);
  process.exit(values.help === true ? 0 : 2);
}
const load = generateLoad(planFromFlags(new URL(values.url)));
process.once('SIGINT', () => void load.stop());
const report = await load.finished;
process.stdout.write(`${values.json === true ? JSON.stringify(report) : formatReport(report)}\n`);
process.exitCode = report.failed > 0 ? 1 : 0;
