import { type Command, InvalidArgumentError } from 'commander';
import { startConformanceTarget } from '../../discovery/conformance/conformance-target.ts';
import { createLogger } from '../../runtime/output/log.ts';
import { standardError, standardOutput } from '../../runtime/output/standard-streams.ts';

interface ConformanceFlags {
  port: number;
  adapterPort: number;
}

const host = '127.0.0.1';

export function registerConformanceCommand(program: Command): void {
  program
    .command('xds-conformance')
    .summary('Serve a public xDS conformance harness')
    .description(
      'Serve an xDS server over a cache of resources, and the adapter through which a public xDS conformance harness fills ' +
        `the cache. Both listen on ${host} only. SIGTERM and SIGINT stop it.`,
    )
    .option('--port <port>', 'Port of the xDS server; 0 selects a free one', portNumber, 18_000)
    .option('--adapterPort <port>', 'Port of the adapter; 0 selects a free one', portNumber, 17_000)
    .action((flags: ConformanceFlags) => serveConformance(flags));
}

async function serveConformance({ port, adapterPort }: ConformanceFlags): Promise<void> {
  // Standard output contains only the line that reports the open ports.
  const logger = createLogger({ outputLevel: 'default:warn', write: (line) => standardError.write(line) });
  const target = await startConformanceTarget({ host, port, adapterPort, logger });
  standardOutput.print(`xDS on ${host}:${target.port}, adapter on ${host}:${target.adapterPort}\n`);
  await new Promise<void>((resolve) => {
    process.once('SIGTERM', () => resolve());
    process.once('SIGINT', () => resolve());
  });
  target.close();
}

function portNumber(text: string): number {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65_535) throw new InvalidArgumentError('Must be a port: 0 to 65535.');
  return port;
}
