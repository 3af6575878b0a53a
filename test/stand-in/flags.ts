/** The flags of Envoy's command line that a supervisor uses. Flags unknown to Envoy are errors here, too. */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

export interface StandInFlags {
  readonly mode: 'serve' | 'validate';
  /** Empty if the configuration is on the command line. */
  readonly configFile: string;
  readonly configYaml: string;
  readonly epoch: number;
  readonly baseId: number;
  readonly parentShutdownMs: number;
  readonly drainMs: number;
}

const text = { type: 'string' } as const;
const knownFlags = {
  'config-path': { ...text, short: 'c' },
  mode: text,
  'restart-epoch': text,
  'base-id': text,
  'drain-time-s': text,
  'parent-shutdown-time-s': text,
  'drain-strategy': text,
  'local-address-ip-version': text,
  'file-flush-interval-msec': text,
  'file-flush-min-size-kb': text,
  'log-format': text,
  'log-level': { ...text, short: 'l' },
  'component-log-level': text,
  'config-yaml': text,
  concurrency: text,
  'skip-deprecated-logs': { type: 'boolean' },
  'enable-core-dump': { type: 'boolean' },
  version: { type: 'boolean' },
  'hot-restart-version': { type: 'boolean' },
} as const;

/** Version of the Envoy that it replaces. */
export const hotRestartVersion = '11.104';

/** @throws Error with the message of Envoy's parser */
export function parseFlags(args: readonly string[]): StandInFlags | 'version' | 'hot restart version' {
  const { values } = parseArgs({ args: [...args], options: knownFlags, strict: true });
  if (values.version) return 'version';
  if (values['hot-restart-version']) return 'hot restart version';
  return {
    mode: values.mode === 'validate' ? 'validate' : 'serve',
    configFile: values['config-path'] ?? '',
    configYaml: values['config-yaml'] ?? '',
    epoch: Number(values['restart-epoch'] ?? 0),
    baseId: Number(values['base-id'] ?? 0),
    parentShutdownMs: Number(values['parent-shutdown-time-s'] ?? 900) * 1_000,
    drainMs: Number(values['drain-time-s'] ?? 600) * 1_000,
  };
}

/** Reads the address of the admin interface from a bootstrap. Throws Envoy's error message for an invalid file. */
export function adminAddressOf(configFile: string): { host: string; port: number } {
  let content: string;
  try {
    content = readFileSync(configFile, 'utf8');
  } catch {
    throw new Error(`Invalid path: ${configFile}`);
  }
  let bootstrap: { admin?: { address?: { socket_address?: { address: string; port_value: number } } } };
  try {
    bootstrap = JSON.parse(content);
  } catch {
    throw new Error('Unable to parse JSON as proto (INVALID_ARGUMENT)');
  }
  const address = bootstrap.admin?.address?.socket_address;
  if (address === undefined) throw new Error('the bootstrap has no admin address');
  return { host: address.address, port: address.port_value };
}
